/* HTTPS with certificates made on the spot. */
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/stats.h"
#include "unit/net_testing.h"
#include "unit/test.h"

static char folder[64], cert_path[96], key_path[96], other_key_path[96], rubbish_path[96];

static void key_write(EVP_PKEY *key, const char *path)
{
    FILE *file = fopen(path, "w");
    CHECK(file && PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL) == 1);
    fclose(file);
}

/* Signs itself, for localhost, for an hour. */
static void cert_write(EVP_PKEY *key, const char *path)
{
    X509 *cert = X509_new();
    X509_set_version(cert, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(cert), 1);
    X509_gmtime_adj(X509_getm_notBefore(cert), 0);
    X509_gmtime_adj(X509_getm_notAfter(cert), 3600);
    X509_set_pubkey(cert, key);
    X509_NAME *name = X509_get_subject_name(cert);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"localhost", -1, -1, 0);
    X509_set_issuer_name(cert, name);
    CHECK(X509_sign(cert, key, EVP_sha256()) > 0);
    FILE *file = fopen(path, "w");
    CHECK(file && PEM_write_X509(file, cert) == 1);
    fclose(file);
    X509_free(cert);
}

static void files_make(void)
{
    snprintf(folder, sizeof folder, "%s/quipu-tls-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    CHECK(mkdtemp(folder) != NULL);
    snprintf(cert_path, sizeof cert_path, "%s/cert.pem", folder);
    snprintf(key_path, sizeof key_path, "%s/key.pem", folder);
    snprintf(other_key_path, sizeof other_key_path, "%s/other.pem", folder);
    snprintf(rubbish_path, sizeof rubbish_path, "%s/rubbish.pem", folder);
    EVP_PKEY *key = EVP_EC_gen("P-256"), *other = EVP_EC_gen("P-256");
    key_write(key, key_path);
    key_write(other, other_key_path);
    cert_write(key, cert_path);
    FILE *file = fopen(rubbish_path, "w");
    fputs("rubbish\n", file);
    fclose(file);
    EVP_PKEY_free(key);
    EVP_PKEY_free(other);
}

static void files_remove(void)
{
    unlink(cert_path);
    unlink(key_path);
    unlink(other_key_path);
    unlink(rubbish_path);
    rmdir(folder);
}

static void with_tls(struct net_options *options)
{
    options->threads = 2;
    options->tls_cert = cert_path;
    options->tls_key = key_path;
}

/* A client's TLS connection, or NULL when the handshake fails. */
static SSL *tls_connect(int fd, int version, const char *protocols)
{
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_min_proto_version(context, version);
    SSL_CTX_set_max_proto_version(context, version);
    SSL_CTX_set_security_level(context, 0);
    SSL *tls = SSL_new(context);
    SSL_CTX_free(context);
    if (protocols) SSL_set_alpn_protos(tls, (const unsigned char *)protocols, (unsigned)strlen(protocols));
    SSL_set_fd(tls, fd);
    if (SSL_connect(tls) == 1) return tls;
    SSL_free(tls);
    ERR_clear_error();
    return NULL;
}

/* Reads until the text appears; answers all bytes read. */
static size_t tls_read_until(SSL *tls, const char *text, char *into, size_t room)
{
    size_t len = 0;
    into[0] = 0;
    while (len < room - 1 && !strstr(into, text)) {
        int now = SSL_read(tls, into + len, (int)(room - 1 - len));
        if (now <= 0) break;
        len += (size_t)now;
        into[len] = 0;
    }
    return len;
}

static void converse(uint16_t port, int version)
{
    char text[4096];
    int fd = client_connect(port);
    SSL *tls = tls_connect(fd, version, "\x02h2\x08http/1.1");
    CHECK(tls != NULL);
    if (!tls) return;
    const unsigned char *protocol;
    unsigned protocol_len;
    SSL_get0_alpn_selected(tls, &protocol, &protocol_len);
    CHECK_TEXT(((struct slice){(const char *)protocol, protocol_len}), "http/1.1");
    static const char *const paths[] = {"/echo", "/later", "/turn"};
    for (int i = 0; i < 9; i++) {
        char request[128], expected[64];
        snprintf(request, sizeof request, "POST %s?%d HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc",
                 paths[i % 3], i);
        snprintf(expected, sizeof expected, "POST %s [%d] abc", paths[i % 3], i);
        CHECK(SSL_write(tls, request, (int)strlen(request)) > 0);
        tls_read_until(tls, expected, text, sizeof text);
        CHECK(strstr(text, expected) != NULL);
    }
    static const char last[] = "GET /echo HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
    CHECK(SSL_write(tls, last, sizeof last - 1) > 0);
    tls_read_until(tls, "GET /echo", text, sizeof text);
    CHECK_INT(SSL_read(tls, text, sizeof text), 0);
    CHECK(SSL_get_shutdown(tls) & SSL_RECEIVED_SHUTDOWN); /* an orderly end, not a cut */
    SSL_free(tls);
    close(fd);
}

TEST(net_tls_serves_1_2_and_1_3)
{
    struct testing testing;
    files_make();
    testing_start(&testing, with_tls);
    converse(testing.port, TLS1_2_VERSION);
    converse(testing.port, TLS1_3_VERSION);
    int fd = client_connect(testing.port);
    CHECK(!tls_connect(fd, TLS1_1_VERSION, NULL));
    close(fd);
    fd = client_connect(testing.port);
    CHECK(!tls_connect(fd, TLS1_3_VERSION, "\x02h2"));
    close(fd);
    CHECK_INT(client_status(testing.port, "GET / HTTP/1.1\r\nHost: h\r\n\r\n"),
              0); /* plain text to a TLS port */
    testing_end(&testing);
    files_remove();
}

TEST(net_tls_large_bodies_both_ways)
{
    enum { BODY = 300000, REPLY = 3000000 };
    struct testing testing;
    char request[128], expected[32];
    char *text = malloc(REPLY + 4096);
    files_make();
    testing_start(&testing, with_tls);
    int fd = client_connect(testing.port);
    SSL *tls = tls_connect(fd, TLS1_3_VERSION, NULL);
    CHECK(tls != NULL);
    memset(text, 'x', BODY);
    snprintf(request, sizeof request, "POST /size HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n", BODY);
    SSL_write(tls, request, (int)strlen(request));
    CHECK_INT(SSL_write(tls, text, BODY), BODY);
    snprintf(expected, sizeof expected, "%d %d", BODY, BODY);
    tls_read_until(tls, expected, text, REPLY);
    CHECK(strstr(text, expected) != NULL);
    snprintf(request, sizeof request, "GET /repeat?%d HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n",
             REPLY);
    SSL_write(tls, request, (int)strlen(request));
    sleep_ms(30); /* the socket fills up and the rest has to wait */
    size_t len = tls_read_until(tls, "never", text, REPLY + 4096);
    char *body = strstr(text, "\r\n\r\n");
    CHECK(body && len - (size_t)(body + 4 - text) == REPLY && text[len - 1] == 'a' + (REPLY - 1) % 23);
    SSL_free(tls);
    close(fd);
    free(text);
    testing_end(&testing);
    files_remove();
}

/* A session goes on where its connection moves to. */
TEST(net_tls_connections_move_between_loops)
{
    enum { CLIENTS = 8 };
    struct testing testing;
    int fds[CLIENTS];
    SSL *tls[CLIENTS];
    char text[4096];
    files_make();
    testing_start(&testing, with_tls);
    for (int i = 0; i < CLIENTS; i++) {
        fds[i] = client_connect(testing.port);
        tls[i] = tls_connect(fds[i], TLS1_3_VERSION, NULL);
        CHECK(tls[i] != NULL);
    }
    for (int i = 0; i < CLIENTS; i += 2) { /* all of one loop */
        SSL_free(tls[i]);
        close(fds[i]);
    }
    const struct net_stats *stats = net_server_stats(testing.server);
    static const char request[] = "GET /later HTTP/1.1\r\nHost: h\r\n\r\n";
    for (int round = 0, after = 0; round < 60000 && after < 3; round++) {
        after += stats_read(&stats->moved) > 0;
        for (int i = 1; i < CLIENTS; i += 2) {
            CHECK(SSL_write(tls[i], request, sizeof request - 1) > 0);
            tls_read_until(tls[i], "GET /later", text, sizeof text);
            CHECK(strstr(text, "GET /later []") != NULL);
        }
    }
    CHECK(stats_read(&stats->moved) > 0);
    for (int i = 1; i < CLIENTS; i += 2) {
        SSL_free(tls[i]);
        close(fds[i]);
    }
    testing_end(&testing);
    files_remove();
}

static void tls_short_times(struct net_options *options)
{
    with_tls(options);
    options->limits.header_ms = 50;
}

TEST(net_tls_handshake_times_out)
{
    struct testing testing;
    files_make();
    testing_start(&testing, tls_short_times);
    int fd = client_connect(testing.port);
    CHECK(client_closed(fd));
    CHECK_INT(stats_read(&net_server_stats(testing.server)->connections_open), 0);
    close(fd);
    testing_end(&testing);
    files_remove();
}

static void expect_error(const char *cert, const char *key, const char *expected)
{
    char error[512] = "";
    struct net_options options = {.host = "127.0.0.1",
                                  .threads = 1,
                                  .tls_cert = cert,
                                  .tls_key = key,
                                  .limits = net_limits_default,
                                  .handler = testing_handler};
    CHECK(!net_server_new(&options, error, sizeof error));
    if (!strstr(error, expected)) test_failed(__FILE__, __LINE__, "got: %s\nexpected: %s", error, expected);
}

TEST(net_tls_errors_are_sentences)
{
    char expected[256];
    files_make();
    expect_error(cert_path, other_key_path, "the key does not belong to the certificate");
    expect_error(cert_path, NULL, "TLS needs a certificate file and a key file, but only one was given");
    expect_error("/no/such/cert.pem", key_path,
                 "the certificate file /no/such/cert.pem cannot be read: No such file or directory");
    expect_error(cert_path, "/no/such/key.pem",
                 "the key file /no/such/key.pem cannot be read: No such file or directory");
    snprintf(expected, sizeof expected,
             "the certificate file %s holds no usable certificate: ", rubbish_path);
    expect_error(rubbish_path, key_path, expected);
    snprintf(expected, sizeof expected, "the key file %s holds no usable key: ", rubbish_path);
    expect_error(cert_path, rubbish_path, expected);
    files_remove();
}

TEST(net_tls_reply_in_pieces)
{
    struct testing testing;
    static char text[200000];
    files_make();
    testing_start(&testing, with_tls);
    int fd = client_connect(testing.port);
    SSL *tls = tls_connect(fd, TLS1_3_VERSION, NULL);
    CHECK(tls != NULL);
    for (int round = 0; tls && round < 2; round++) {
        static const char request[] = "GET /pieces?5000 HTTP/1.1\r\nHost: h\r\n\r\n";
        CHECK(SSL_write(tls, request, sizeof request - 1) > 0);
        tls_read_until(tls, "\r\n0\r\n\r\n", text, sizeof text);
        CHECK(strstr(text, "\r\n\r\n6\r\nfirst\n\r\n2\r\n0\n\r\n2\r\n1\n\r\n") != NULL);
        CHECK(strstr(text, "\r\n5\r\n4999\n\r\n0\r\n\r\n") != NULL);
    }
    SSL_free(tls);
    close(fd);
    testing_end(&testing);
    files_remove();
}
