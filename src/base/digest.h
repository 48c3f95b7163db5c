/* SHA-256 as signatures use it: who signs (the remote door) and who checks (the server) must agree to the byte. */
#ifndef BASE_DIGEST_H
#define BASE_DIGEST_H

#include "base/buf.h"
#include "base/slice.h"

#define DIGEST_BYTES 32

/* Appends the bytes as lower-case hexadecimal digits. */
void digest_put_hex(struct buf *out, const unsigned char *bytes, size_t len);
/* Appends the hash of the bytes, in hexadecimal. */
void digest_put_sha256(struct buf *out, struct slice bytes);

#endif
