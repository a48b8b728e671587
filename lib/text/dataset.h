/* dataset.h - reads data sets as prompts: ShareGPT, WikiText, JSON lines, plain text, prompt
 * records.
 *
 *     struct dataset *d = dataset_open("wiki.zip", &options, &e);
 *     while ((r = dataset_next(d, &prompt, &e)) != 0) ...   // prompt: {id, text, reference, ...}
 *     dataset_close(d);
 *
 * The formats, and the prompt in each:
 *   sharegpt  array or NDJSON of {id, conversations: [{from, value}]}. Turn 1 is the text, turn 2
 *             the reference. Conversations with fewer than min_turns turns, or whose first turn is
 *             not by human or user, are skipped.
 *   wikitext  a line that is neither blank nor a "= heading =" is a paragraph. Its first words
 *             (split_words) are the text. The rest, from the space on, is the reference.
 *   text      lines up to a blank line are a paragraph. The paragraph is the text.
 *   jsonl     one object per prompt, with named fields. An instruction with an `input` is put into
 *             Alpaca's prompt form (Taori et al. 2023) and has the source "SOURCE:alpaca-input".
 *   prompts   prompt records: all their fields are kept. If the last message is the assistant's
 *             answer, it becomes the reference.
 * An answer "... #### 42" (GSM8K) is split: the whole is the reference, "42" is the answer. Files
 * named .csv or .tsv are refused, unless a format is named. A byte order mark at the start is
 * skipped; line ends may be \r\n; any other byte of a text stays as it is. U+0000 and invalid UTF-8
 * break only the record that contains them. */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "lib/base/err.h"

enum { DATASET_NO_SPLIT = -1, DATASET_HALF = 0 };

struct dataset_options {
    const char *format;    /* auto | sharegpt | wikitext | jsonl | text | prompts */
    const char *member;    /* glob of the archive member, or NULL */
    /* jsonl: names of fields. A name may be a path: "input.context". NULL: the first of these that
     * the object has. text: text, prompt, question, instruction. reference: reference,
     * canonical_solution, completion, response, output. id: id, task_id. answer: answer. task:
     * task. */
    const char *text_field, *reference_field, *answer_field, *id_field, *task_field;
    const struct task *task; /* the items of a known task (task.h), or NULL */
    int64_t max_bytes;     /* of unpacked data; 0: 8 GiB when packed */
    int64_t max_line;      /* bytes of one object, line or paragraph */
    int64_t min_turns;     /* sharegpt: least turns of a conversation */
    int64_t split_words;   /* a paragraph is cut behind this number of words. DATASET_HALF: behind
                            * half of its words; DATASET_NO_SPLIT: not cut */
    int split_set;         /* 0: split_words is not used: half for wikitext, not cut for text */
    int renumber;          /* 1: all ids are generated, even if the data have ids */
};

struct dataset; /* one open file */

/* NULL: the errors of input_open (lib/base/archive/input.h). */
struct dataset *dataset_open(const char *path, const struct dataset_options *options,
                             struct err *e);
/* Returns 1: *prompt is {id, text | prompt_ids | messages, reference?, answer?, task?, source} (the
 * caller's reference). Returns 0 at the end. Rows without text, or without the wanted turns, are
 * skipped. -1 with EXIT_BAD_DATA: one record is broken ("NAME:LINE: ..."), and the caller may go
 * on, unless dataset_broken(). After any other code the caller must stop. */
int dataset_next(struct dataset *dataset, json_t **prompt, struct err *e);
int dataset_broken(const struct dataset *dataset); /* 1: the input is cut, a table, or too large */
/* The id of the last broken record, borrowed; NULL: none. */
const json_t *dataset_id(const struct dataset *dataset);
const char *dataset_name(const struct dataset *dataset); /* path or path:member; borrowed */
const char *dataset_note(const struct dataset *dataset); /* input_note() of the input */
/* 1: the id of the last prompt is generated: STEM-NUMBER, by its position in the file. */
int dataset_makes_id(const struct dataset *dataset);
/* 1: this data set has generated this id. */
int dataset_made(const struct dataset *dataset, const char *id);
int64_t dataset_line(const struct dataset *dataset);     /* line of the last record, from 1 */
int64_t dataset_passed_over(const struct dataset *dataset); /* number of skipped rows */
void dataset_close(struct dataset *dataset);
