/* near.c - see near.h. An edit inserts, removes or changes a letter (Levenshtein 1966), or swaps
 * two neighbours (Damerau 1964). Words are short, and three rows of the distance table suffice. */
#include "lib/base/cli/near.h"

#include <stdio.h>
#include <string.h>

enum { LETTERS = 63 };

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* Both words have at most LETTERS letters. */
static int edits(const char *from, const char *to)
{
    int row[3][LETTERS + 1], length = (int)strlen(to);
    for (int j = 0; j <= length; j++)
        row[0][j] = j;
    for (int i = 1; from[i - 1]; i++) {
        int *now = row[i % 3], *above = row[(i + 2) % 3], *before = row[(i + 1) % 3];
        now[0] = i;
        for (int j = 1; j <= length; j++) {
            now[j] = least(above[j - 1] + (from[i - 1] != to[j - 1]),
                           least(above[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1])
                now[j] = least(now[j], before[j - 2] + 1);
        }
    }
    return row[strlen(from) % 3][length];
}

void near_add(struct near *n, const char *name)
{
    size_t longer = strlen(n->got) > strlen(name) ? strlen(n->got) : strlen(name);
    if (longer > LETTERS || !*name)
        return;
    int e = edits(n->got, name);
    if (3 * e <= (int)longer && (!*n->name || e < n->edits)) {
        snprintf(n->name, sizeof n->name, "%s", name);
        n->edits = e;
    }
}

void near_words(struct near *n, const char *words)
{
    while (words) {
        char word[LETTERS + 1];
        size_t len = strcspn(words, "|");
        snprintf(word, sizeof word, "%.*s", (int)len, words);
        near_add(n, word);
        words = words[len] ? words + len + 1 : NULL;
    }
}

const char *near_hint(const struct near *n, const char *mark, char hint[NEAR_HINT])
{
    snprintf(hint, NEAR_HINT, *n->name ? " (did you mean %s%s?)" : "", mark, n->name);
    return hint;
}
