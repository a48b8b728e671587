/* prompt.h - prompt records become token ids.
 *
 * {"id":"p1","text":"..."} or "messages":[{"role","content"}] or "prompt_ids":[...]. The text
 * that stands for a special token ("<|eot_id|>") inside a prompt is ordinary text; only the chat
 * template and the tokenizer's post-processor make special tokens (unless `parse_special`). */
#ifndef RUN_PROMPTS_PROMPT_H
#define RUN_PROMPTS_PROMPT_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/text/chat.h"
#include "lib/checkpoint/checkpoint.h"
#include "lib/decode/generation.h"
#include "lib/text/tokenizer.h"

/* How text becomes ids. */
struct prompt_encoder {
    const struct config *config;
    const struct tokenizer *tokenizer; /* NULL: prompt_ids only; for synth: hashed words too */
    enum chat chat;    /* CHAT_NONE: text as it is; else text is one user message */
    int parse_special; /* 1: special-token texts in prompts mean the tokens */
};

/* *to encodes for a model: with the chat template that `chat` names (chat_choose); *choice (NULL:
 * nobody asks) is what to say of it. tokenizer NULL: there is none, and only auto and none are
 * possible. -1: EXIT_BAD_USAGE, EXIT_BAD_DATA, or a file of the checkpoint cannot be read. */
int prompt_encoder_make(struct prompt_encoder *to, const struct checkpoint *c,
                        const struct tokenizer *tokenizer, const char *chat,
                        struct chat_choice *choice, struct err *e);

struct prompt {
    json_t *record;    /* owned */
    char *where;       /* "FILE:LINE", for messages; owned */
    const char *id;    /* inside record */
    const char *chat;  /* the template that its text went through, "none", NULL for prompt_ids */
    char *text;        /* what a reader sees of the prompt; NULL when there is no text; owned */
    struct generation_input input; /* ids owned by the prompt; key from the id */
    int64_t tokenize_ns; /* what making its ids took, chat template included */
};

/* Takes the record (stolen, also on error). -1: EXIT_BAD_DATA for a record that is no prompt (no
 * id, none or several of the three forms, wrong types, an id outside the vocabulary, text
 * without a tokenizer); EXIT_FAILED_RECORDS for a sound prompt that cannot be answered: it holds
 * the mask id, or an autoregressive model would have nothing to start from. */
int prompt_make(struct prompt *p, json_t *record, const char *where,
                const struct prompt_encoder *encoder, struct err *e);
void prompt_free(struct prompt *p);

/* Pseudo ids for models without a tokenizer (synth:): one id per word, the FNV hash of the word
 * over the vocabulary, special ids left out. Speed is then real; quality is not claimed. */
void prompt_pseudo_ids(const struct config *c, const char *text, struct ids *out);

#endif
