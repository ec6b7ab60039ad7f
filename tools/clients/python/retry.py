"""The retry rules of SVC API, for the generated client."""

import asyncio
import time

import httpx

from .client import Client

REPEATABLE = {409, 429, 500, 502, 503, 504}
LONGEST_PAUSE = 60
"""The longest pause, in seconds. A response with a longer Retry-After goes to the caller."""
TIMEOUT = 65
"""The API ends a request after 29 seconds, and a stream after 60."""


class RetryTransport(httpx.BaseTransport, httpx.AsyncBaseTransport):
    """Repeats a request after 409, 429, 5xx and a lost connection, after the seconds of Retry-After or else after 1, 2, 4
    seconds. An SMS without an Idempotency-Key is never repeated: it could be sent twice. A response with
    Idempotency-Replayed is final."""

    def __init__(self, attempts=3):
        self.attempts = attempts
        self.transport, self.async_transport = httpx.HTTPTransport(), httpx.AsyncHTTPTransport()

    def pauses(self, request):
        """Returns the pauses before each further attempt. The last attempt has None."""
        once = request.url.path.endswith("/sms/send") and "Idempotency-Key" not in request.headers
        return [None] if once else [2**attempt for attempt in range(self.attempts - 1)] + [None]

    def pause(self, response, pause):
        """Returns the seconds until the next attempt, or None where the response is final."""
        if pause is None or response.status_code not in REPEATABLE or "Idempotency-Replayed" in response.headers:
            return None
        after = response.headers.get("Retry-After", str(pause))
        return int(after) if after.isdigit() and int(after) <= LONGEST_PAUSE else None

    def handle_request(self, request):
        for pause in self.pauses(request):
            try:
                response = self.transport.handle_request(request)
            except httpx.TransportError:
                if pause is None:
                    raise
            else:
                pause = self.pause(response, pause)
                if pause is None:
                    return response
                response.close()
            time.sleep(pause)

    async def handle_async_request(self, request):
        for pause in self.pauses(request):
            try:
                response = await self.async_transport.handle_async_request(request)
            except httpx.TransportError:
                if pause is None:
                    raise
            else:
                pause = self.pause(response, pause)
                if pause is None:
                    return response
                await response.aclose()
            await asyncio.sleep(pause)

    def close(self):
        self.transport.close()

    async def aclose(self):
        await self.async_transport.aclose()


def connect(base_url, client_id, client_secret, environment="dev", attempts=3):
    """Returns a client whose requests follow the retry rules. base_url ends in /api/v1; environment is the value of X-ENV."""
    headers = {"X-API-KEY": client_id, "X-API-SECRET": client_secret, "X-ENV": environment}
    return Client(
        base_url=base_url,
        timeout=httpx.Timeout(TIMEOUT),
        headers=headers,
        httpx_args={"transport": RetryTransport(attempts)},
    )
