/* test-hash.c - SHA-256, and going on from its state. */
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

/* A hash goes on from its state, wherever in a block it is cut. */
static void test_hash_resumes(void)
{
    enum { N = 200 };
    char bytes[N], state[65], want[65], got[65];
    int same = 0;
    for (size_t i = 0; i < N; i++)
        bytes[i] = (char)(i * 37);
    hash_bytes(bytes, N, want);
    for (size_t n = 0; n <= N; n++) {
        struct hash *a = hash_new();
        hash_add(a, bytes, n);
        hash_state(a, state);
        const size_t whole = n - n % HASH_BLOCK;
        struct hash *b = hash_resume(state, (int64_t)whole);
        hash_add(b, bytes + whole, N - whole);
        hash_hex(b, got);
        same += hash_bytes_added(a) == (int64_t)n && hash_bytes_added(b) == N && !strcmp(want, got);
        hash_free(a);
        hash_free(b);
    }
    struct hash *far = hash_resume(state, (int64_t)1 << 40);
    ok(same == N + 1 && hash_bytes_added(far) == (int64_t)1 << 40, "a hash goes on from its state");
    hash_free(far);
    state[63] = 'g';
    ok(!hash_resume("", 0) && !hash_resume(state, 0), "which is 64 hex digits");
}

int main(void)
{
    test_vectors();
    test_hash_resumes();
    return tap_done();
}
