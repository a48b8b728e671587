/* recount.c - see recount.h. A token belongs to the emission that brought its last byte. The bytes
 * of the ids, added up, give these places. If by the server's count each emission is one token, no
 * place is needed. */
#include "lib/remote/recount.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"

/* 1: within the slack. */
static int is_near(int64_t a, int64_t b)
{
    const int64_t apart = a > b ? a - b : b - a;
    return apart <= RECOUNT_SLACK + b / 10;
}

static void set_all(struct recount *c, size_t n, int32_t tokens)
{
    c->emitted = mem_zero(n, sizeof *c->emitted);
    for (size_t i = 0; i < n; i++)
        c->emitted[i] = tokens;
}

/* Gives each id to an emission. The text of the first id may begin with a space that the answer
 * lacks; ids left over by this go to the last emission, and so do counted tokens without an id. */
static void share_ids(struct recount *c, const struct reply *r, const struct tokenizer *t,
                      const struct ids *ids)
{
    struct buf b = {0};
    size_t at = 0;
    int64_t left = c->tokens;
    set_all(c, r->n, 0);
    for (size_t i = 0; i < ids->n && r->n && left > 0; i++, left--) {
        tokenizer_bytes(t, &ids->v[i], 1, 0, &b);
        while (at + 1 < r->n && r->emit[at].end < b.len)
            at++;
        c->emitted[at]++;
    }
    if (r->n)
        c->emitted[r->n - 1] += (int32_t)left;
    buf_free(&b);
}

int recount_answer(struct recount *c, const struct reply *r, const struct tokenizer *t,
                   struct err *e)
{
    const int64_t said = r->new_tokens.n;
    const char *text = r->text.data ? r->text.data : "";
    struct ids ids = {0};
    *c = (struct recount){.retokenized = -1};
    if (t && tokenizer_encode(t, text, r->text.len, ENCODE_PLAIN, &ids, e))
        return -1;
    if (t)
        c->retokenized = (int64_t)ids.n;
    int bad = 0;
    if (!t && !r->new_tokens.is)
        bad = err_set(e, EXIT_BAD_DATA, "the server counts no tokens (usage): name its tokenizer "
                      "with -m");
    else if (t && r->new_tokens.is && !is_near(said, c->retokenized))
        bad = err_set(e, EXIT_BAD_DATA, "usage: the server counts %lld tokens, its text has %lld",
                      (long long)said, (long long)c->retokenized);
    /* without a tokenizer: emissions of a token each, and one that has no text */
    const int with_end = r->stop && !strcmp(r->stop, "eos") &&
                         (t ? said > c->retokenized : said == (int64_t)r->n + 1);
    c->tokens = r->new_tokens.is ? said - with_end : c->retokenized;
    if (!bad && (int64_t)r->n == c->tokens)
        set_all(c, r->n, 1);
    else if (!bad && t)
        share_ids(c, r, t, &ids);
    ids_free(&ids);
    return bad;
}

int recount_prompt(const struct reply *r, int64_t ours, int least, struct err *e)
{
    const int64_t said = r->prompt_tokens.n;
    if (!r->prompt_tokens.is || ours < 0 || is_near(said, ours) || (least && said > ours))
        return 0;
    return err_set(e, EXIT_BAD_DATA, "usage: the server counts %lld tokens in the prompt, it has "
                   "%lld", (long long)said, (long long)ours);
}

void recount_free(struct recount *c)
{
    free(c->emitted);
    *c = (struct recount){0};
}
