"""Calls every operation with the client package for Python. Arguments: base URL, Client ID, Client Secret, Idempotency-Key."""

import sys

from svc_api_client.api.currency import convert_pair_rate, get_latest_rates, get_pair_rate, get_rate_history, list_currency_codes
from svc_api_client.api.location import look_up_location
from svc_api_client.api.qr_code import generate_qr_code
from svc_api_client.api.security import check_burner_email, check_vpn
from svc_api_client.api.sms import get_sms_balance, get_sms_status, send_sms
from svc_api_client.api.utilities import generate_barcode, generate_pdf, stream_pdf
from svc_api_client.models import (
    BarcodeRequest,
    BurnerEmailRequest,
    GetSmsBalanceBody,
    LocationRequest,
    PdfRequest,
    PdfResponseType,
    QrCodeRequest,
    SmsSendSingle,
    SmsSendSingleSendMethod,
    VpnRequest,
)
from svc_api_client.retry import connect

base_url, client_id, client_secret, key = sys.argv[1:]
client = connect(base_url, client_id, client_secret)


def check(name, fine, response):
    if response.status_code != 200 or not fine:
        sys.exit(f"{name}: {response.status_code} {response.parsed} {response.content[:200]}")
    print(name)


def call(operation, *arguments, **named):
    return operation.sync_detailed(*arguments, client=client, **named)


sms = SmsSendSingle(send_method=SmsSendSingleSendMethod.SINGLE, to="0771234567", message="Hello")
r = call(send_sms, body=sms)
if r.status_code != 503:
    sys.exit(f"an SMS without a key was repeated: {r.status_code}")
r = call(send_sms, body=sms, idempotency_key=key)
check("sendSms", r.parsed.data.credits_charged == 10000, r)
r = call(get_sms_status, r.parsed.data.provider_response.reference)
check("getSmsStatus", r.parsed.data.reason == "vendor_has_no_status", r)
r = call(get_sms_balance, body=GetSmsBalanceBody())
check("getSmsBalance", r.parsed.data.source == "service_wallet", r)
r = call(check_burner_email, body=BurnerEmailRequest(email="someone@mailinator.com"))
check("checkBurnerEmail", r.parsed.data.is_disposable is True, r)
r = call(check_vpn, body=VpnRequest(ip="8.8.8.8"))
check("checkVpn", r.parsed.data.ip_address == "8.8.8.8", r)
r = call(look_up_location, body=LocationRequest(ip="8.8.8.8"))
check("lookUpLocation", r.parsed.data.country_code is not None, r)
r = call(generate_barcode, body=BarcodeRequest(data="svc-api"))
check("generateBarcode", r.content.startswith(b"\x89PNG"), r)
r = call(generate_qr_code, body=QrCodeRequest(data="svc-api"))
check("generateQrCode", r.content.startswith(b"\x89PNG"), r)
r = call(generate_pdf, body=PdfRequest(html="<h1>Invoice</h1>"))
check("generatePdf", r.content.startswith(b"%PDF-"), r)
r = call(generate_pdf, body=PdfRequest(html="<h1>Invoice</h1>", response_type=PdfResponseType.BASE64))
check("generatePdf as Base64", b'"JVBERi' in r.content, r)
label = PdfRequest(html="<h1>Label</h1>", page_width=100, page_height=150, outline=True, password="parcel", strict=True)
r = call(stream_pdf, body=label)
check("streamPdf", r.content.startswith(b"%PDF-"), r)
r = call(get_latest_rates, "USD")
check("getLatestRates", r.parsed.data.rates["LKR"] > 0, r)
r = call(get_rate_history, "USD", symbols="LKR")
check("getRateHistory", r.parsed.data.days[0].rates["LKR"] > 0, r)
r = call(get_pair_rate, "USD", "LKR")
check("getPairRate", r.parsed.data.rate > 0, r)
r = call(convert_pair_rate, "USD", "LKR", "100")
check("convertPairRate", r.parsed.data.conversion_result > 0, r)
r = call(list_currency_codes)
check("listCurrencyCodes", r.parsed.data.count > 30, r)

r = call(generate_barcode, body=BarcodeRequest(data=""))
if r.status_code != 422 or "data" not in r.parsed.error.details.additional_properties:
    sys.exit(f"an error: {r.status_code} {r.parsed}")
print("an error")
