/* chat.h - chat templates: how messages become one prompt. A template holds its own BOS, so the
 * post-processor has no part in it.
 *
 *     LLaMA 3, LLaDA   BOS, then for each message
 *                      <|start_header_id|>ROLE<|end_header_id|>\n\nCONTENT<|eot_id|>
 *     LLaMA 3.1        the same behind a system block that is always there
 *     ChatML           <|im_start|>ROLE\nCONTENT<|im_end|>\n, without BOS (Qwen)
 *
 * Source: the templates in the publishers' tokenizer_config.json. Qwen2.5 Instruct puts a default
 * system message in front of conversations without one; here a system message is there when the
 * caller gives one.
 */
#ifndef TEXT_CHAT_H
#define TEXT_CHAT_H

#include "lib/base/err.h"
#include "lib/text/tokenizer.h"

enum chat { CHAT_NONE, CHAT_LLAMA3, CHAT_LLAMA31, CHAT_LLADA, CHAT_CHATML, CHAT_COUNT };
#define CHAT_CHOICES "auto|none|llama3|llama3.1|llada|chatml" /* of --chat */

/* The special token behind a content. NULL for CHAT_NONE. */
const char *chat_end(enum chat kind);

/* --chat NAME -> template. auto: the family's `own`, none when the tokenizer lacks its tokens.
 * `model` names the checkpoint in messages. -1: unknown name (EXIT_BAD_USAGE), or the tokenizer
 * lacks the template's tokens (EXIT_BAD_DATA). */
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
