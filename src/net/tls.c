/* TLS 1.2 and 1.3 with OpenSSL. It reads and writes through a BIO of ours, not through its own for sockets:
 * ours notices short reads, which saves a system call per request, and never raises SIGPIPE. */
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509err.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/fail.h"
#include "base/limits.h"
#include "net/internal.h"

struct tls {
    SSL_CTX *context;
    BIO_METHOD *socket;
};

/* ---- the BIO: its data is the connection ---- */
static bool must_retry(ssize_t count)
{
    return count < 0 && (errno == EAGAIN || errno == EINTR);
}

static int socket_read(BIO *bio, char *data, int len)
{
    struct connection *connection = BIO_get_data(bio);
    ssize_t count = recv(connection->fd, data, (size_t)len, 0);
    connection->drained = count < len && !connection->half_closed;
    BIO_clear_retry_flags(bio);
    if (must_retry(count)) BIO_set_retry_read(bio);
    return (int)count;
}

static int socket_write(BIO *bio, const char *data, int len)
{
    struct connection *connection = BIO_get_data(bio);
    ssize_t count = send(connection->fd, data, (size_t)len, MSG_NOSIGNAL);
    BIO_clear_retry_flags(bio);
    if (must_retry(count)) BIO_set_retry_write(bio);
    return (int)count;
}

static long socket_control(BIO *bio, int command, long number, void *pointer)
{
    (void)bio, (void)number, (void)pointer;
    return command == BIO_CTRL_FLUSH; /* nothing is held back here; all else is unknown */
}

static BIO_METHOD *socket_method(void)
{
    BIO_METHOD *method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "connection");
    ensure(method && BIO_meth_set_read(method, socket_read) && BIO_meth_set_write(method, socket_write) &&
           BIO_meth_set_ctrl(method, socket_control));
    return method;
}

/* ---- the context ---- */
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

static bool cert_load(SSL_CTX *context, const char *cert, const char *key, char *error, size_t error_len)
{
    if (!readable_file("certificate", cert, error, error_len) || !readable_file("key", key, error, error_len))
        return false;
    ERR_clear_error();
    if (SSL_CTX_use_certificate_chain_file(context, cert) != 1) {
        snprintf(error, error_len, "the certificate file %s holds no usable certificate: %s", cert,
                 openssl_reason());
        return false;
    }
    if (SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) == 1 &&
        SSL_CTX_check_private_key(context) == 1)
        return true;
    int reason = ERR_GET_REASON(ERR_peek_last_error());
    if (reason == X509_R_KEY_VALUES_MISMATCH || reason == X509_R_KEY_TYPE_MISMATCH)
        snprintf(error, error_len, "the key does not belong to the certificate");
    else
        snprintf(error, error_len, "the key file %s holds no usable key: %s", key, openssl_reason());
    return false;
}

static SSL_CTX *context_new(void)
{
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());
    ensure(context && SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1);
    /* Of TLS 1.2, which has others: who records what is sent cannot read it later, also with the key. */
    ensure(SSL_CTX_set_cipher_list(context, "ECDHE+AESGCM:ECDHE+CHACHA20") == 1);
    SSL_CTX_set_options(context,
                        SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                  SSL_MODE_RELEASE_BUFFERS); /* idle connections keep no record buffers */
    SSL_CTX_set_read_ahead(context, 1);                      /* one read for a record's head and body */
    SSL_CTX_set_default_passwd_cb(context, no_passphrase);
    SSL_CTX_set_alpn_select_cb(context, choose_protocol, NULL);
    return context;
}

struct tls *tls_new(const char *cert, const char *key, char *error, size_t error_len)
{
    if (!cert || !key) {
        snprintf(error, error_len, "TLS needs a certificate file and a key file, but only one was given");
        return NULL;
    }
    SSL_CTX *context = context_new();
    if (!cert_load(context, cert, key, error, error_len)) {
        ERR_clear_error();
        SSL_CTX_free(context);
        return NULL;
    }
    struct tls *tls = must_zero(1, sizeof *tls);
    *tls = (struct tls){context, socket_method()};
    return tls;
}

void tls_free(struct tls *tls)
{
    if (!tls) return;
    SSL_CTX_free(tls->context);
    BIO_meth_free(tls->socket);
    free(tls);
}

/* ---- connections ---- */
bool tls_attach(struct connection *connection)
{
    const struct tls *tls = connection->loop->server->tls;
    BIO *bio = BIO_new(tls->socket);
    connection->tls = SSL_new(tls->context);
    if (!bio || !connection->tls) {
        BIO_free(bio);
        return false;
    }
    BIO_set_data(bio, connection);
    BIO_set_init(bio, 1);
    SSL_set_bio(connection->tls, bio, bio);
    SSL_set_accept_state(connection->tls);
    return true;
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
    if (connection->drained && !SSL_has_pending(connection->tls)) connection->readable = false;
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
