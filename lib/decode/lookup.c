/* lookup.c - see lookup.h. One scan from the end of the text to its start looks at all places
 * before the last id. The scan keeps the place that agrees longest with the end of the text; ties
 * go to the last place. */
#include "lib/decode/lookup.h"

/* Returns how many ids directly before `place` equal the last ids of the text; at most `most`. */
static size_t count_agreeing(const int32_t *ids, size_t n, size_t place, size_t most)
{
    size_t same = 0;
    while (same < most && same < place && ids[place - 1 - same] == ids[n - 1 - same])
        same++;
    return same;
}

size_t lookup_guess(const int32_t *ids, size_t n, size_t ngram, size_t most, int32_t *guess)
{
    size_t best = 0, from = 0;
    for (size_t place = n - 1; place > 0 && best < ngram; place--) {
        size_t same = count_agreeing(ids, n, place, ngram);
        if (same > best) {
            best = same;
            from = place;
        }
    }
    for (size_t j = 0; best && j < most; j++)
        guess[j] = from + j < n ? ids[from + j] : guess[from + j - n];
    return best ? most : 0;
}
