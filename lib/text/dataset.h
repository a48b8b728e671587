/* dataset.h - data sets as prompts: ShareGPT, WikiText, JSON lines, plain text, prompt records.
 *
 *     struct dataset *d = dataset_open("wiki.zip", &options, &e);
 *     while ((r = dataset_next(d, &prompt, &e)) != 0) ...   // prompt: {id, text, reference, ...}
 *     dataset_close(d);
 *
 * The prompt in each format:
 *   sharegpt  array or NDJSON of {id, conversations: [{from, value}]}: at least min_turns turns,
 *             the first by human or user; turn 1 is the text, turn 2 the reference.
 *   wikitext  a line that is neither blank nor a "= heading =" is a paragraph; its first words
 *             are the text; the rest, from the space on, is the reference.
 *   text      lines up to a blank line are a paragraph, which is the text.
 *   jsonl     one object per prompt, with named fields. An instruction with an `input` takes
 *             Alpaca's prompt form (Taori et al. 2023) and the source "SOURCE:alpaca-input".
 *   prompts   prompt records: all their fields are kept. If the last message is the assistant's
 *             answer, it becomes the reference.
 * An answer "... #### 42" (GSM8K) becomes reference and answer. Files named .csv or .tsv are
 * refused. A byte order mark at the start is skipped; line ends may be \r\n; any other byte of a
 * text stays as it is. U+0000 and invalid UTF-8 break only the record that contains them. */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "lib/base/err.h"

enum { DATASET_NO_SPLIT = -1, DATASET_HALF = 0 };

struct dataset_options {
    const char *format;    /* auto | sharegpt | wikitext | jsonl | text | prompts */
    const char *member;    /* glob of the archive member, or NULL */
    /* jsonl: names of fields; NULL: text = text, prompt, question or instruction; reference =
     * reference, canonical_solution, completion, response or output; id = id or task_id; answer,
     * task. A name may be a path: "input.context". */
    const char *text_field, *reference_field, *answer_field, *id_field, *task_field;
    const struct task *task; /* the items of a known task (task.h), or NULL */
    int64_t max_bytes;     /* of unpacked data; 0: 8 GiB when packed */
    int64_t max_line;      /* bytes of one object, line or paragraph */
    int64_t min_turns;     /* sharegpt */
    int64_t split_words;   /* words of the text when a paragraph is cut; DATASET_HALF: half of them;
                            * DATASET_NO_SPLIT: not cut */
    int split_set;         /* 0: half for wikitext, not cut for text */
    int renumber;          /* 1: ids are positions, even if the data have ids */
};

struct dataset; /* one open file */

/* NULL: as input_open. */
struct dataset *dataset_open(const char *path, const struct dataset_options *options,
                             struct err *e);
/* 1: *prompt is {id, text | prompt_ids | messages, reference?, answer?, task?, source} (the
 * caller's reference); 0: end. -1 with EXIT_BAD_DATA: one record is broken ("NAME:LINE: ..."), go
 * on; stop after any other code, or when dataset_broken. Rows without text, or without the wanted
 * turns, are skipped. */
int dataset_next(struct dataset *dataset, json_t **prompt, struct err *e);
int dataset_broken(const struct dataset *dataset); /* 1: the input is cut, a table, or too large */
/* of the last broken record; NULL; borrowed */
const json_t *dataset_id(const struct dataset *dataset);
const char *dataset_name(const struct dataset *dataset); /* path or path:member; borrowed */
const char *dataset_note(const struct dataset *dataset); /* as input_note */
/* 1: the id of the last prompt is generated: STEM-NUMBER, by its position in the file. */
int dataset_makes_id(const struct dataset *dataset);
/* 1: this data set has generated this id. */
int dataset_made(const struct dataset *dataset, const char *id);
int64_t dataset_line(const struct dataset *dataset);     /* of the last record */
int64_t dataset_passed_over(const struct dataset *dataset);
void dataset_close(struct dataset *dataset);
