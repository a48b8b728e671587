/* test-hash.c - tests SHA-256 with two published vectors. */
#include "lib/base/hash.h"
#include "tests/tap.h"

/* Source: FIPS 180-2, B.1 and B.3. */
static void test_vectors(void)
{
    char got[65], a[1000];
    hash_bytes("abc", 3, got);
    ok(!strcmp(got, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"), "abc");
    memset(a, 'a', sizeof a);
    struct hash *h = hash_new();
    for (int i = 0; i < 1000; i++)
        hash_add(h, a, sizeof a);
    hash_hex(h, got);
    hash_free(h);
    ok(!strcmp(got, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"),
       "a million times a");
}

int main(void)
{
    test_vectors();
    return tap_done();
}
