<?php

// Calls every operation with the client package for PHP. Arguments: base URL, Client ID, Client Secret,
// Idempotency-Key.

declare(strict_types=1);

use SvcApi\Api;
use SvcApi\Model;

[, $baseUrl, $id, $secret, $key] = $argv;
require 'vendor/autoload.php';

$configuration = (new SvcApi\Configuration())->setHost($baseUrl)->setApiKey('X-API-KEY', $id)->setApiKey('X-API-SECRET', $secret);
$http = SvcApi\Retry::client();

function check(string $name, bool $fine): void
{
    if (!$fine) {
        fwrite(STDERR, "$name: another response than expected\n");
        exit(1);
    }
    echo $name, "\n";
}

$sms = new Api\SMSApi($http, $configuration);
$request = new Model\SmsSendRequest(['send_method' => 'single', 'to' => '0771234567', 'message' => 'Hello']);
try {
    $sms->sendSms($request);
    check('an SMS without a key', false);
} catch (SvcApi\ApiException $e) {
    check('an SMS without a key', $e->getCode() === 503);
}
$sent = $sms->sendSms($request, idempotency_key: $key)->getData();
check('sendSms', $sent->getCreditsCharged() === 10000);
$reference = $sent->getProviderResponse()->getReference();
check('getSmsStatus', $sms->getSmsStatus($reference)->getData()->getReason() === 'vendor_has_no_status');
check('getSmsBalance', $sms->getSmsBalance(body: new stdClass())->getData()->getSource() === 'service_wallet');
$security = new Api\SecurityApi($http, $configuration);
check('checkBurnerEmail', $security->checkBurnerEmail(new Model\BurnerEmailRequest(['email' => 'someone@mailinator.com']))->getData()->getIsDisposable());
check('checkVpn', $security->checkVpn(new Model\VpnRequest(['ip' => '8.8.8.8']))->getData()->getIpAddress() === '8.8.8.8');
$location = new Api\LocationApi($http, $configuration);
check('lookUpLocation', $location->lookUpLocation(new Model\LocationRequest(['ip' => '8.8.8.8']))->getData()->getCountryCode() !== null);
$utilities = new Api\UtilitiesApi($http, $configuration);
check('generateBarcode', str_starts_with($utilities->generateBarcode(new Model\BarcodeRequest(['data' => 'svc-api']))->fread(8), "\x89PNG"));
check('generatePdf', str_starts_with($utilities->generatePdf(new Model\PdfRequest(['html' => '<h1>Invoice</h1>']))->fread(8), '%PDF-'));
check('streamPdf', str_starts_with($utilities->streamPdf(new Model\PdfRequest(['html' => '<h1>Label</h1>', 'page_width' => 100, 'page_height' => 150, 'strict' => true]))->fread(8), '%PDF-'));
$codes = new Api\QRCodeApi($http, $configuration);
check('generateQrCode', str_starts_with($codes->generateQrCode(new Model\QrCodeRequest(['data' => 'svc-api']))->fread(8), "\x89PNG"));
$currency = new Api\CurrencyApi($http, $configuration);
check('getLatestRates', $currency->getLatestRates('USD')->getData()->getRates()['LKR'] > 0);
$history = $currency->getRateHistory('USD')->getData();
check('getRateHistory', $history->getDays()[0]->getRates()['LKR'] > 0);
check('getPairRate', $currency->getPairRate('USD', 'LKR')->getData()->getRate() > 0);
check('convertPairRate', $currency->convertPairRate('USD', 'LKR', '100')->getData()->getConversionResult() > 0);
check('listCurrencyCodes', $currency->listCurrencyCodes()->getData()->getCount() > 30);

try {
    $utilities->generateBarcode(new Model\BarcodeRequest(['data' => 'letters', 'type' => 'EAN13']));
    check('an error', false);
} catch (SvcApi\ApiException $e) {
    check('an error', $e->getCode() === 400 && $e->getResponseObject()->getError()->getCode() === 'http_error');
}
