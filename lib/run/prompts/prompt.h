/* prompt.h - turns prompt records into token ids.
 *
 * {"id":"p1","text":"..."} or "messages":[{"role","content"}] or "prompt_ids":[...]. The name of a
 * special token ("<|eot_id|>") inside a prompt is ordinary text: only the chat template and the
 * tokenizer's post-processor add special tokens (unless parse_special is set). */
#pragma once

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
    const struct tokenizer *tokenizer; /* NULL: only prompt_ids; for synth: also hashed words */
    const struct chat_template *chat; /* NULL: text unchanged; else text is one user message */
    int parse_special; /* 1: names of special tokens in prompts mean the tokens */
};

/* *to = the encoder of a model with the chat template that `chat` names (chat_choose). *choice =
 * the note about that choice, and the template, which is the caller's: chat_free() it after the
 * last prompt. If tokenizer is NULL, chat must be auto or none. Returns -1: EXIT_BAD_USAGE,
 * EXIT_BAD_DATA, or a file of the checkpoint cannot be read. */
int prompt_encoder_make(struct prompt_encoder *to, const struct checkpoint *model,
                        const struct tokenizer *tokenizer, const char *chat,
                        struct chat_choice *choice, struct err *e);

struct prompt {
    json_t *record;    /* owned */
    char *where;       /* "FILE:LINE", for messages; owned */
    const char *id;    /* inside record */
    const char *chat;  /* template of its text, or "none"; NULL for prompt_ids */
    char *text;        /* the prompt as text; NULL: none; owned */
    struct generation_input input; /* ids owned by the prompt; key from the id */
    int64_t tokenize_ns; /* time to make its ids, chat template included */
};

/* Makes a prompt of a record (stolen, also on error). Returns -1: EXIT_BAD_DATA for an invalid
 * record (no id, none or several of the three forms, wrong types, an id outside the vocabulary,
 * text without a tokenizer); EXIT_FAILED_RECORDS for a valid prompt that the model cannot answer:
 * it holds the mask id, or it is empty and the model needs a first token. */
int prompt_make(struct prompt *prompt, json_t *record, const char *where,
                const struct prompt_encoder *encoder, struct err *e);
void prompt_free(struct prompt *prompt);

/* Pseudo ids for models without a tokenizer (synth:): one id per word, the FNV hash of the word
 * modulo the vocabulary without special ids. Speed is real then; quality is not measured. */
void prompt_pseudo_ids(const struct config *config, const char *text, struct ids *out);
