/* The hash that signatures are made of, against a published value. */
#include "base/digest.h"

#include "unit/test.h"

TEST(digest_of_known_texts)
{
    struct buf out = {0};
    digest_put_sha256(&out, SLICE("abc"));
    CHECK_TEXT(buf_view(&out), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    out.len = 0;
    digest_put_sha256(&out, SLICE(""));
    CHECK_TEXT(buf_view(&out), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    buf_free(&out);
}
