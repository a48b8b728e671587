/* chat.h - chat templates: they turn messages into one prompt. A template contains BOS, so the
 * tokenizer's post-processor is not used.
 *
 * The template of a checkpoint is run (jinja.h). For checkpoints without one there are these, named
 * after the models that publish their like:
 *
 *     LLaMA 3, LLaDA   BOS, then for each message
 *                      <|start_header_id|>ROLE<|end_header_id|>\n\nCONTENT<|eot_id|>
 *     LLaMA 3.1, 3.2   the same after a fixed system block, with a fixed date
 *     ChatML           <|im_start|>ROLE\nCONTENT<|im_end|>\n; chatml_bos: after LLaMA 3's BOS
 *     Qwen 2, 2.5, SmolLM2   ChatML, with their own system message when none is given */
#pragma once

#include <jansson.h>

#include "lib/base/err.h"
#include "lib/setting/words.h"
#include "lib/text/tokenizer.h"

/* The special token after a content. NULL for CHAT_NONE. */
const char *chat_end(enum chat kind);

/* A template that is ready to run; NULL: none. */
struct chat_template;
/* "llama3"; "own": that of the checkpoint; "none". */
const char *chat_name(const struct chat_template *chat);
void chat_free(struct chat_template *chat);

/* The template of a checkpoint: Jinja, n bytes; NULL: none. All borrowed. */
struct chat_source {
    const char *text;
    size_t n;
    const json_t *tokens; /* {"bos_token": "TEXT", ...}; NULL: none */
    const char *where;    /* the file, for messages */
    const char *fault;    /* why the value is not a template; "": it is one, or there is none */
};
struct chat_choice {
    struct chat_template *chosen; /* owned */
    int unknown;     /* 1: the checkpoint has a template that does not run here: a warning */
    struct err said; /* its text: a message for standard error; "": none */
};
/* --chat NAME -> template. auto: the template of the checkpoint; none when it has none, when it
 * cannot be run for a message of a user, or when the tokenizer lacks its tokens. family: the
 * template to recommend when the checkpoint has none; `model` names the checkpoint in messages. -1:
 * unknown name (EXIT_BAD_USAGE), or the tokenizer lacks the named template's tokens
 * (EXIT_BAD_DATA). */
int chat_choose(const char *name, const struct chat_source *own, enum chat family,
                const char *model, const struct tokenizer *tokenizer, struct chat_choice *out,
                struct err *e);

struct chat_message { const char *role, *content; };
/* Appends the ids of the template for these messages, with add_generation_prompt. NULL: the
 * contents, a line feed between. A special token's name inside a role or a content is ordinary
 * text, unless `parse_special`; without such names the ids are those of the whole text. tokenizer
 * holds the template's tokens (chat_choose). -1: EXIT_BAD_DATA, text that is not UTF-8, or the
 * template refuses the messages. */
int chat_encode(const struct chat_template *chat, const struct tokenizer *tokenizer,
                const struct chat_message *message, size_t n, int parse_special, struct ids *out,
                struct err *e);
