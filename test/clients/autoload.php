<?php
// Loads the client and Guzzle of Debian's packages, in place of Composer.
require 'GuzzleHttp/autoload.php';
spl_autoload_register(function (string $class): void {
    $file = 'client-php/lib/' . str_replace('\\', '/', substr($class, strlen('SvcApi\\'))) . '.php';
    if (str_starts_with($class, 'SvcApi\\') && is_file($file)) {
        require $file;
    }
});
