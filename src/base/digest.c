/* The hash itself is OpenSSL's. */
#include "base/digest.h"

#include <openssl/sha.h>

void digest_put_hex(struct buf *out, const unsigned char *bytes, size_t len)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < len; i++) {
        buf_byte(out, (unsigned char)digits[bytes[i] >> 4]);
        buf_byte(out, (unsigned char)digits[bytes[i] & 15]);
    }
}

void digest_put_sha256(struct buf *out, struct slice bytes)
{
    unsigned char hash[DIGEST_BYTES];
    SHA256((const unsigned char *)bytes.data, bytes.len, hash);
    digest_put_hex(out, hash, sizeof hash);
}
