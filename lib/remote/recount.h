/* recount.h - counts the tokens of an answer, finds when each token came, and checks whether the
 * server's own counts can be true.
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
    int64_t tokens;      /* tokens of the answer, without the token that ends it. Without a
                          * tokenizer the ending token is recognized only if each emission is one
                          * token */
    int64_t retokenized; /* ids of its text; -1: no tokenizer */
    int32_t *emitted;    /* [reply->n] tokens that each emission completed; NULL: unknown; owned */
};
/* Counts the tokens of an answer. tokenizer may be NULL. Returns -1 (EXIT_BAD_DATA) if the server's
 * count cannot be true, or if there is neither a count nor a tokenizer. */
int recount_answer(struct recount *recount, const struct reply *reply,
                   const struct tokenizer *tokenizer, struct err *e);
/* Checks the server's count of a prompt that has `ours` ids (below 0: unknown). least 1: the server
 * may count more, because a template adds ids. Returns -1 (EXIT_BAD_DATA) if it cannot be true. */
int recount_prompt(const struct reply *reply, int64_t ours, int least, struct err *e);
void recount_free(struct recount *recount);
