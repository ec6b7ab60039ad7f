<?php

declare(strict_types=1);

namespace SvcApi;

use GuzzleHttp\Client;
use GuzzleHttp\Exception\ConnectException;
use GuzzleHttp\HandlerStack;
use GuzzleHttp\Middleware;
use Psr\Http\Message\RequestInterface;
use Psr\Http\Message\ResponseInterface;

/** The retry rules of SVC API, for the generated client. */
final class Retry
{
    private const REPEATABLE = [409, 429, 500, 502, 503, 504];
    /** The longest pause, in seconds. A response with a longer Retry-After goes to the caller. */
    private const LONGEST_PAUSE = 60;
    /** The API ends a request after 29 seconds, and a stream after 60. */
    private const TIMEOUT = 65;

    /**
     * Returns an HTTP client that sends X-ENV with the value of environment, and repeats a request after 409, 429, 5xx and a lost connection, after the seconds of
     * Retry-After or else after 1, 2, 4 seconds. An SMS without an Idempotency-Key is never repeated: it could be sent
     * twice. A response with Idempotency-Replayed is final.
     */
    public static function client(string $environment = 'dev', int $attempts = 3): Client
    {
        $stack = HandlerStack::create();
        $stack->push(Middleware::retry(
            fn (int $repeats, RequestInterface $request, ?ResponseInterface $response, mixed $error): bool =>
                $repeats + 1 < $attempts && self::mayRepeat($request) && self::repeats($repeats, $response, $error),
            fn (int $repeats, ?ResponseInterface $response): int => 1000 * self::pause($repeats - 1, $response),
        ));
        return new Client(['handler' => $stack, 'headers' => ['X-ENV' => $environment], 'timeout' => self::TIMEOUT]);
    }

    private static function mayRepeat(RequestInterface $request): bool
    {
        return !str_ends_with($request->getUri()->getPath(), '/sms/send') || $request->hasHeader('Idempotency-Key');
    }

    private static function repeats(int $repeats, ?ResponseInterface $response, mixed $error): bool
    {
        if ($response === null) {
            return $error instanceof ConnectException;
        }
        return in_array($response->getStatusCode(), self::REPEATABLE, true)
            && !$response->hasHeader('Idempotency-Replayed')
            && self::pause($repeats, $response) <= self::LONGEST_PAUSE;
    }

    private static function pause(int $repeats, ?ResponseInterface $response): int
    {
        $after = $response?->getHeaderLine('Retry-After') ?? '';
        return ctype_digit($after) ? (int) $after : 2 ** $repeats;
    }
}
