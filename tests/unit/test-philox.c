/* test-philox.c - compares Philox4x32-10 with its published answers (Random123's kat_vectors), and
 * tests the functions of philox.h and rng.h that use it. */
#include <string.h>

#include "lib/base/philox.h"
#include "lib/base/rng.h"
#include "tests/tap.h"

int main(void)
{
    static const struct {
        uint32_t counter[4], key[2], out[4];
    } known[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        uint32_t out[4];
        philox(known[i].counter, known[i].key, out);
        ok(!memcmp(out, known[i].out, sizeof out), "published answer %zu", i);
    }
    ok(philox_at(0, 0, 0) == 0xe169c58d6627e8d5u && rng_at(0, 0, 0) == philox_at(0, 0, 0) &&
           rng_at(7, UINT64_MAX, 3) == philox_at(7, UINT64_MAX, 3),
       "philox_at() gives 64 bits of a block, and rng_at() gives the same bits");
    ok(philox_unit(0) == 0 && philox_unit(UINT64_MAX) < 1 &&
           rng_unit(UINT64_MAX / 3) == philox_unit(UINT64_MAX / 3),
       "a double in [0, 1)");
    return tap_done();
}
