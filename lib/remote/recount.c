/* recount.c - see recount.h. A token belongs to the emission that brought its last byte. The
 * lengths of the ids in bytes, added up, tell that emission. They are not needed if by the server's
 * count each emission is one token. */
#include "lib/remote/recount.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"

/* 1: a and b differ by at most RECOUNT_SLACK tokens and a tenth of b. */
static int is_near(int64_t a, int64_t b)
{
    const int64_t apart = a > b ? a - b : b - a;
    return apart <= RECOUNT_SLACK + b / 10;
}

static void set_all(struct recount *recount, size_t n, int32_t tokens)
{
    recount->emitted = mem_zero(n, sizeof *recount->emitted);
    for (size_t i = 0; i < n; i++)
        recount->emitted[i] = tokens;
}

/* Gives each id to an emission. The text of the first id may begin with a space that the answer
 * lacks; ids left over by this go to the last emission, and so do counted tokens without an id. */
static void share_ids(struct recount *recount, const struct reply *reply,
                      const struct tokenizer *tokenizer, const struct ids *ids)
{
    struct buf text = {0};
    size_t at = 0;
    int64_t left = recount->tokens;
    set_all(recount, reply->n, 0);
    for (size_t i = 0; i < ids->n && reply->n && left > 0; i++, left--) {
        tokenizer_bytes(tokenizer, &ids->v[i], 1, 0, &text);
        while (at + 1 < reply->n && reply->emit[at].end < text.len)
            at++;
        recount->emitted[at]++;
    }
    if (reply->n)
        recount->emitted[reply->n - 1] += (int32_t)left;
    buf_free(&text);
}

int recount_answer(struct recount *recount, const struct reply *reply,
                   const struct tokenizer *tokenizer, struct err *e)
{
    const int64_t said = reply->new_tokens.n;
    const char *text = reply->text.data ? reply->text.data : "";
    struct ids ids = {0};
    *recount = (struct recount){.retokenized = -1};
    if (tokenizer && tokenizer_encode(tokenizer, text, reply->text.len, ENCODE_PLAIN, &ids, e))
        return -1;
    if (tokenizer)
        recount->retokenized = (int64_t)ids.n;
    int bad = 0;
    if (!tokenizer && !reply->new_tokens.is)
        bad = err_set(e, EXIT_BAD_DATA, "the server counts no tokens (usage): name its tokenizer "
                      "with -m");
    else if (tokenizer && reply->new_tokens.is && !is_near(said, recount->retokenized))
        bad = err_set(e, EXIT_BAD_DATA, "usage: the server counts %lld tokens, its text has %lld",
                      (long long)said, (long long)recount->retokenized);
    /* Without a tokenizer: one token more than emissions, so each emission is one token and the
     * ending token has no text. */
    const int with_end = reply->stop && !strcmp(reply->stop, "eos") &&
                         (tokenizer ? said > recount->retokenized : said == (int64_t)reply->n + 1);
    recount->tokens = reply->new_tokens.is ? said - with_end : recount->retokenized;
    if (!bad && (int64_t)reply->n == recount->tokens)
        set_all(recount, reply->n, 1);
    else if (!bad && tokenizer)
        share_ids(recount, reply, tokenizer, &ids);
    ids_free(&ids);
    return bad;
}

int recount_prompt(const struct reply *reply, int64_t ours, int least, struct err *e)
{
    const int64_t said = reply->prompt_tokens.n;
    if (!reply->prompt_tokens.is || ours < 0 || is_near(said, ours) || (least && said > ours))
        return 0;
    return err_set(e, EXIT_BAD_DATA, "usage: the server counts %lld tokens in the prompt, it has "
                   "%lld", (long long)said, (long long)ours);
}

void recount_free(struct recount *recount)
{
    free(recount->emitted);
    *recount = (struct recount){0};
}
