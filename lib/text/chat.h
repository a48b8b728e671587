/* chat.h - chat templates. Source: models.md 1.4 (LLaDA Instruct) and 4.5 (LLaMA 3, 3.1). A
 * template holds its own BOS, so the post-processor has no part in it. */
#ifndef TEXT_CHAT_H
#define TEXT_CHAT_H

#include "lib/base/err.h"
#include "lib/text/tokenizer.h"

enum chat { CHAT_NONE, CHAT_LLAMA3, CHAT_LLAMA31, CHAT_LLADA };

/* --chat auto|none|llama3|llama3.1|llada -> template. auto: the family's `own`, none when the
 * tokenizer lacks its tokens. `model` names the checkpoint in messages. -1: unknown name
 * (EXIT_BAD_USAGE), or the tokenizer lacks the template's tokens (EXIT_BAD_DATA). */
int chat_choose(const char *name, enum chat own, const char *model, const struct tokenizer *t,
                enum chat *out, struct err *e);

struct chat_message { const char *role, *content; };
/* Appends the ids of the template for these messages, ending with the assistant's header: special
 * tokens only where the template has them, and each text between two of them encoded as one piece.
 * CHAT_NONE: the contents, a line feed between. A special token's name inside a role or a content
 * is ordinary text, unless `parse_special`; without such names the ids are those of the whole text.
 * t holds the template's tokens (chat_choose). -1: EXIT_BAD_DATA, text that is not UTF-8. */
int chat_encode(enum chat kind, const struct tokenizer *t, const struct chat_message *m, size_t n,
                int parse_special, struct ids *out, struct err *e);

#endif
