/* recount.h - how many tokens an answer has, when each came, and whether the server's own counts
 * can be true.
 *
 * The server counts the tokens that it generated, often with the token that ends the text. To check
 * this count the text is encoded again. The two counts may differ for two reasons: the token that
 * ends the text, and a model that wrote the text in other pieces than the tokenizer would. A count
 * that differs by more than RECOUNT_SLACK tokens plus a tenth is wrong. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/remote/reply.h"
#include "lib/text/tokenizer.h"

enum { RECOUNT_SLACK = 2 };
struct recount {
    int64_t tokens;      /* of the answer, without the token that ends it. Without a tokenizer
                          * that token is recognized only if each emission is one token */
    int64_t retokenized; /* ids of its text; -1: no tokenizer */
    int32_t *emitted;    /* [reply->n] tokens that each emission completed; NULL: unknown; owned */
};
/* tokenizer NULL: no tokenizer. -1 (EXIT_BAD_DATA): the server's count cannot be true, or there is
 * none and no tokenizer. */
int recount_answer(struct recount *recount, const struct reply *reply,
                   const struct tokenizer *tokenizer, struct err *e);
/* Checks the count of a prompt of `ours` ids (below 0: unknown). least 1: a template adds ids. */
int recount_prompt(const struct reply *reply, int64_t ours, int least, struct err *e);
void recount_free(struct recount *recount);
