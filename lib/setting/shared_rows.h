/* shared_rows.h - rows that several tables of settings have. */
#pragma once

#include "lib/setting/settings.h"
#include "lib/setting/words.h"

/* Traits of a setting that takes a list. SWEPT_TEXT: the setting changes the answers; then it may
 * also change the number of passes, so it has SETTING_SPEED too. SWEPT_SPEED: the setting changes
 * only time and memory. */
enum {
    SWEPT_TEXT = SETTING_SWEPT | SETTING_TEXT | SETTING_SPEED,
    SWEPT_SPEED = SETTING_SWEPT | SETTING_SPEED,
    LIMIT = 1 << 20 /* largest value of a count */
};

/* The length that a generator must deliver. `answer`: at the end of the text, the clock of an
 * answer stops and the answer leaves the batch. `fixed`: every answer has the whole length. Systems
 * are compared under one contract, because an answer that ends early is faster by its text, not by
 * its system. */
#define CONTRACT_ROW(default_word)                                                                 \
    {.name = "contract", .type = SETTING_CHOICE, .choices = "answer|fixed",                        \
     .standard = default_word, .label = "contract", .traits = SWEPT_TEXT | SETTING_SHOWN,          \
     .help = "answer: stop at the end of the text; fixed: always generate the whole length"}

#define ADMIT_ROWS                                                                                 \
    {.name = "admit", .type = SETTING_CHOICE, .choices = "static|continuous",                      \
     .standard = "static", .label = "admit", .traits = SWEPT_SPEED, .rare = 1,                     \
     .help = "static: all prompts of a batch start together; continuous: a prompt joins the "      \
             "batch when another one ends"},                                                       \
    {.name = "arrival_rate", .type = SETTING_REAL, .hi = 1e6, .standard = "0",                     \
     .unit = "requests/s", .label = "rate", .only = "admit=continuous", .traits = SWEPT_SPEED,     \
     .rare = 1,                                                                                    \
     .help = "prompts that come per second, in the mean, at seeded random times; times of "        \
             "answers count from there; 0: a prompt comes when there is a place for it"}

/* Ablation switches: each leaves out one optimisation, to measure what it saves (struct variant in
 * lib/network). */
#define VARIANT_ROWS                                                                               \
    {.name = "attention", .type = SETTING_CHOICE, .choices = "tiled|dense|sliced",                 \
     .standard = "tiled", .label = "attention", .traits = SWEPT_SPEED, .rare = 1,                  \
     .help = "attention scores held in memory at once; tiled: one tile; dense: a whole layer; "    \
             "sliced: some heads"},                                                                \
    {.name = "attention_heads", .type = SETTING_INT, .lo = 1, .hi = LIMIT, .standard = "1",        \
     .unit = "heads", .label = "attention_heads", .only = "attention=sliced",                      \
     .traits = SWEPT_SPEED, .rare = 1, .help = "heads computed at a time"},                        \
    {.name = "ffn", .type = SETTING_CHOICE, .choices = "fused|unfused", .standard = "fused",       \
     .label = "ffn", .traits = SWEPT_SPEED, .rare = 1,                                             \
     .help = "unfused: compute gate and up as two products whose results go through memory"},      \
    {.name = "head", .type = SETTING_CHOICE, .choices = "streamed|dense",                          \
     .standard = "streamed", .label = "head", .traits = SWEPT_SPEED, .rare = 1,                    \
     .help = "streamed: reduce logits as they come; dense: write all logits to memory first"}

/* Names of the rows in VARIANT_ROWS in other programs, for the aliases of a table. */
#define VARIANT_ALIASES                                                                            \
    {"enable-flash-attention", "attention", "tiled", 1},                                           \
    {"enable-attention-slicing", "attention", "sliced", 1}

/* Rows that limit the tokens that may be drawn. They count where the condition `where` or
 * `or_where` holds; where NULL: always. */
#define FILTER_ROWS(where, or_where)                                                               \
    {.name = "top_k", .type = SETTING_INT, .hi = 1 << 24, .standard = "0", .unit = "tokens",       \
     .label = "top_k", .only = where, .also = or_where, .traits = SWEPT_TEXT,                      \
     .help = "sample from the K most likely tokens, ties included; 0: from all"},                  \
    {.name = "top_p", .type = SETTING_REAL, .lo = 1e-9, .hi = 1, .standard = "1",                  \
     .label = "top_p", .only = where, .also = or_where, .traits = SWEPT_TEXT,                      \
     .help = "sample from the most likely tokens that hold this probability; 1: from all"}

/* The chat template of the prompts. It is a setting because the better of two systems can change
 * with the template. */
#define CHAT_ROW                                                                                   \
    {.name = "chat_template", .type = SETTING_CHOICE, .choices = CHAT_CHOICES, .standard = "auto", \
     .label = "chat", .traits = SWEPT_TEXT | SETTING_CONDITION, .option = "chat",                  \
     .help = "chat template; auto: the model's own, or none"}

/* The last row of a table: the innermost loop when lists are crossed. */
#define BATCH_ROW                                                                                  \
    {.name = "batch", .type = SETTING_INT, .lo = 1, .hi = LIMIT, .standard = "1",                  \
     .unit = "prompts", .label = "batch", .traits = SWEPT_SPEED | SETTING_SHOWN,                   \
     .help = "prompts generated together"}

/* Rows of generators that write from left to right. */
#define MAX_NEW_ROW                                                                                \
    {.name = "max_new", .letter = 'n', .type = SETTING_INT, .lo = 1, .hi = LIMIT,                  \
     .standard = "128", .unit = "tokens", .label = "max_new",                                      \
     .traits = SWEPT_TEXT | SETTING_SHOWN | SETTING_LENGTH,                                        \
     .help = "generate at most this many tokens", .option = "gen-length"}
#define TEMPERATURE_ROW(meaning)                                                                   \
    {.name = "temperature", .type = SETTING_REAL, .hi = 1000, .standard = "0", .label = "temp",    \
     .traits = SWEPT_TEXT, .help = meaning}
#define KV_CACHE_ROW                                                                               \
    {.name = "cache", .type = SETTING_CHOICE, .choices = "on|off", .standard = "on",               \
     .label = "cache", .traits = SWEPT_SPEED,                                                      \
     .help = "keep keys and values, or compute all positions again for each token"}
