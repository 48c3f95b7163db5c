/* TLS 1.2 and 1.3 with OpenSSL, on the connection's own non-blocking socket. */
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509err.h>
#include <stdio.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/limits.h"
#include "net/internal.h"

/* A key with a passphrase must fail, not ask at the terminal. */
static int no_passphrase(char *buffer, int size, int for_writing, void *context)
{
    (void)buffer, (void)size, (void)for_writing, (void)context;
    return 0;
}

/* Clients that offer HTTP/2 as well are told that this is HTTP/1.1. */
static int choose_protocol(SSL *tls, const unsigned char **out, unsigned char *out_len,
                           const unsigned char *offered, unsigned int offered_len, void *context)
{
    static const unsigned char spoken[] = "\x08http/1.1";
    unsigned char *chosen;
    (void)tls, (void)context;
    if (SSL_select_next_proto(&chosen, out_len, spoken, sizeof spoken - 1, offered, offered_len) !=
        OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
}

static bool readable_file(const char *what, const char *path, char *error, size_t error_len)
{
    FILE *file = fopen(path, "r");
    if (!file) {
        snprintf(error, error_len, "the %s file %s cannot be read: %s", what, path, strerror(errno));
        return false;
    }
    fclose(file);
    return true;
}

static const char *openssl_reason(void)
{
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());
    return reason ? reason : "unknown reason";
}

static bool cert_load(SSL_CTX *tls, const char *cert, const char *key, char *error, size_t error_len)
{
    if (!readable_file("certificate", cert, error, error_len) || !readable_file("key", key, error, error_len))
        return false;
    ERR_clear_error();
    if (SSL_CTX_use_certificate_chain_file(tls, cert) != 1) {
        snprintf(error, error_len, "the certificate file %s holds no usable certificate: %s", cert,
                 openssl_reason());
        return false;
    }
    if (SSL_CTX_use_PrivateKey_file(tls, key, SSL_FILETYPE_PEM) == 1 && SSL_CTX_check_private_key(tls) == 1)
        return true;
    int reason = ERR_GET_REASON(ERR_peek_last_error());
    if (reason == X509_R_KEY_VALUES_MISMATCH || reason == X509_R_KEY_TYPE_MISMATCH)
        snprintf(error, error_len, "the key does not belong to the certificate");
    else
        snprintf(error, error_len, "the key file %s holds no usable key: %s", key, openssl_reason());
    return false;
}

SSL_CTX *tls_new(const char *cert, const char *key, char *error, size_t error_len)
{
    if (!cert || !key) {
        snprintf(error, error_len, "TLS needs a certificate file and a key file, but only one was given");
        return NULL;
    }
    SSL_CTX *tls = SSL_CTX_new(TLS_server_method());
    ensure(tls && SSL_CTX_set_min_proto_version(tls, TLS1_2_VERSION) == 1);
    SSL_CTX_set_options(tls,
                        SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE);
    SSL_CTX_set_mode(tls, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                              SSL_MODE_RELEASE_BUFFERS); /* idle connections keep no record buffers */
    SSL_CTX_set_read_ahead(tls, 1);                      /* one read for a record's head and body */
    SSL_CTX_set_default_passwd_cb(tls, no_passphrase);
    SSL_CTX_set_alpn_select_cb(tls, choose_protocol, NULL);
    if (cert_load(tls, cert, key, error, error_len)) return tls;
    ERR_clear_error();
    SSL_CTX_free(tls);
    return NULL;
}

void tls_free(SSL_CTX *tls)
{
    SSL_CTX_free(tls);
}

bool tls_attach(struct connection *connection)
{
    SSL *tls = SSL_new(connection->loop->server->tls);
    if (!tls) return false;
    connection->tls = tls;
    SSL_set_accept_state(tls);
    return SSL_set_fd(tls, connection->fd) == 1;
}

/* 0 when the operation only has to wait. */
static int later_or_end(SSL *tls, int result)
{
    int error = SSL_get_error(tls, result);
    return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE ? 0 : -1;
}

int tls_handshake(struct connection *connection)
{
    ERR_clear_error();
    int result = SSL_do_handshake(connection->tls);
    return result == 1 ? 1 : later_or_end(connection->tls, result);
}

ssize_t tls_read(struct connection *connection, void *data, size_t len)
{
    size_t count = 0;
    ERR_clear_error();
    int result = SSL_read_ex(connection->tls, data, len, &count);
    return result == 1 ? (ssize_t)count : later_or_end(connection->tls, result);
}

ssize_t tls_write(struct connection *connection, const void *data, size_t len)
{
    size_t count = 0;
    ERR_clear_error();
    int result = SSL_write_ex(connection->tls, data, len, &count);
    return result == 1 ? (ssize_t)count : later_or_end(connection->tls, result);
}

void tls_end(struct connection *connection)
{
    ERR_clear_error();
    SSL_shutdown(connection->tls);
}
