/* task.c - see task.h. Templates are Jinja, as in the harnesses that made the tasks known, so that
 * a row can be compared with the template of a harness letter by letter. A field that an item lacks
 * is an error, because Jinja would write nothing in its place. */
#include "lib/text/task.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/file.h"
#include "lib/base/mem.h"
#include "lib/base/regex.h"
#include "lib/record/json.h"
#include "lib/record/rec.h"
#include "lib/setting/tasks.h"
#include "lib/text/jinja.h"

enum template { PROMPT, SHOT, ANSWER, HEADER, RIGHT, LEAVE_OUT,
                TEMPLATES };
static const char *const names[TEMPLATES] = {"prompt", "shot", "answer", "header", "right",
                                              "leave_out"};

struct task {
    json_t *rows;
    const json_t *row; /* the task's row in `rows` */
    char *name;
    const char *part;
    struct jinja *form[TEMPLATES]; /* NULL: the row has no such template */
    struct regex **clean;          /* patterns of row.clean */
    size_t cleans;
    json_t *left_out; /* {reason: number of items} */
    json_t *shown; /* items that every prompt shows as examples */
    int64_t shots;
};

/* ---- opening ---- */

static int open_templates(struct task *task, struct err *e)
{
    const json_t *clean = json_object_get(task->row, "clean"), *pair;
    for (int i = 0; i < TEMPLATES; i++) {
        const char *text = rec_text(task->row, names[i]);
        if (text && !(task->form[i] = jinja_parse(text, strlen(text), e)))
            return err_prefix(e, "task %s: %s", task->name, names[i]);
    }
    task->clean = mem_zero(json_array_size(clean) + 1, sizeof *task->clean);
    json_array_foreach(clean, task->cleans, pair) {
        const char *pattern = json_string_value(json_array_get(pair, 0));
        if (!(task->clean[task->cleans] = regex_new(pattern ? pattern : "(", e)))
            return err_prefix(e, "task %s: clean", task->name);
    }
    return 0;
}

/* Reads the first `shots` items of the file of examples. */
static int read_shown(struct task *task, struct err *e)
{
    char *path = tasks_file(task->row, "shots_file", task->part);
    const char *const paths[] = {path};
    json_t *item;
    int got = 1;
    if (!path)
        return err_set(e, EXIT_BAD_USAGE, "--shots: task %s has no examples to show", task->name);
    if (!file_exists(path))
        got = tasks_missing(task->row, path, task->part, e);
    struct rec_reader *reader = got > 0 ? rec_read_open(paths, 1, e) : NULL;
    got = reader ? 1 : -1;
    while (got > 0 && (int64_t)json_array_size(task->shown) < task->shots &&
           (got = rec_read(reader, &item, e)) > 0)
        json_array_append_new(task->shown, item);
    rec_read_close(reader);
    if (got == 0)
        got = err_set(e, EXIT_BAD_DATA, "%s: expected %lld examples, got %zu", path,
                      (long long)task->shots, json_array_size(task->shown));
    free(path);
    return got < 0 ? -1 : 0;
}

static int choose_row(struct task *task, int64_t shots, struct err *e)
{
    struct buf known = {0};
    size_t i;
    const json_t *row;
    task->row = tasks_find(task->rows, task->name);
    if (!task->row) {
        json_array_foreach(task->rows, i, row)
            buf_format(&known, "%s%s", i ? ", " : "", rec_text(row, "name"));
        err_set(e, EXIT_BAD_USAGE, "--task: no task '%.100s'; known: %.700s", task->name,
                known.len ? known.data : "none");
        buf_free(&known);
        return -1;
    }
    task->part = tasks_part(task->name);
    task->shots = shots < 0 ? rec_int(task->row, "shots", 0) : shots;
    return 0;
}

struct task *task_open(const char *name, const char *table, int64_t shots, struct err *e)
{
    struct task *task = mem_zero(1, sizeof *task);
    task->name = mem_text(name);
    task->shown = json_array();
    task->left_out = json_object();
    task->rows = tasks_read(table, e);
    if (task->rows && !choose_row(task, shots, e) && !open_templates(task, e) &&
        (!task->shots || rec_text(task->row, "examples") || !read_shown(task, e)))
        return task;
    task_close(task);
    return NULL;
}

void task_close(struct task *task)
{
    if (!task)
        return;
    for (int i = 0; i < TEMPLATES; i++)
        jinja_free(task->form[i]);
    for (size_t i = 0; i < task->cleans; i++)
        regex_free(task->clean[i]);
    free(task->clean);
    json_decref(task->shown);
    json_decref(task->left_out);
    json_decref(task->rows);
    free(task->name);
    free(task);
}

char *task_items(const struct task *task, struct err *e)
{
    char *path = tasks_file(task->row, "file", task->part);
    if (path && file_exists(path))
        return path;
    tasks_missing(task->row, path ? path : "(no folder: HOME is not set)", task->part, e);
    free(path);
    return NULL;
}

const char *task_id_field(const struct task *task)
{
    return rec_text(task->row, "id");
}

/* ---- an item ---- */

static int render(const struct task *task, enum template which, const json_t *item, struct buf *to,
                  struct err *e)
{
    json_t *variables = json_copy((json_t *)(uintptr_t)item);
    struct jinja_written written = {0};
    json_object_set_new(variables, "part", json_string(task->part));
    int bad = task->form[which] && jinja_render(task->form[which], variables, &written, e);
    if (bad)
        err_prefix(e, "%s", names[which]);
    else if (written.text.len)
        buf_put(to, written.text.data, written.text.len);
    jinja_written_free(&written);
    json_decref(variables);
    return bad ? -1 : 0;
}

static void clean(const struct task *task, struct buf *text)
{
    for (size_t i = 0; i < task->cleans; i++) {
        const json_t *pair = json_array_get(json_object_get(task->row, "clean"), i);
        const char *by = json_string_value(json_array_get(pair, 1));
        regex_replace(task->clean[i], by ? by : "", text);
    }
}

static int check_fields(const struct task *task, const json_t *item, struct err *e)
{
    size_t i;
    const json_t *value;
    json_array_foreach(json_object_get(task->row, "fields"), i, value)
        if (!json_at(item, json_string_value(value)))
            return err_set(e, EXIT_BAD_DATA, "task %s: field \"%s\": expected a value, got none",
                           task->name, json_string_value(value));
    return 0;
}

/* The choices of an item, cleaned; the caller's. row.choices is the path of the choices in the
 * item, or a list of choices for all items. */
static json_t *choices_of(const struct task *task, const json_t *item)
{
    const json_t *given = json_object_get(task->row, "choices"), *value;
    const json_t *list = json_is_string(given) ? json_at(item, json_string_value(given)) : given;
    json_t *out = json_array();
    size_t i;
    json_array_foreach(list, i, value) {
        struct buf text = {0};
        buf_text(&text, json_is_string(value) ? json_string_value(value) : "");
        clean(task, &text);
        json_array_append_new(out, json_string(text.len ? text.data : ""));
        buf_free(&text);
    }
    return out;
}

/* *at = the number of the right choice, which the template `right` writes. -1: it is no number of a
 * choice. */
static int right_of(const struct task *task, const json_t *item, const json_t *choices, size_t *at,
                    struct err *e)
{
    struct buf text = {0};
    char *end = NULL;
    if (render(task, RIGHT, item, &text, e))
        return -1;
    *at = text.len ? strtoul(text.data, &end, 10) : 0;
    int bad = !text.len || *end || *at >= json_array_size(choices);
    if (bad)
        err_set(e, EXIT_BAD_DATA, "right: expected a number below %zu, got '%.40s'",
                json_array_size(choices), text.len ? text.data : "");
    buf_free(&text);
    return bad ? -1 : 0;
}

static int put_question(const struct task *task, const json_t *item, struct buf *to, struct err *e)
{
    struct buf text = {0};
    if (check_fields(task, item, e) || render(task, PROMPT, item, &text, e))
        return -1;
    clean(task, &text);
    buf_put(to, text.len ? text.data : "", text.len);
    buf_free(&text);
    return 0;
}

/* Appends the answer of an example, as prompts show it: by the template `shot`, or the right
 * choice. */
static int put_shown(const struct task *task, const json_t *item, struct buf *to, struct err *e)
{
    if (task->form[SHOT])
        return render(task, SHOT, item, to, e);
    json_t *choices = choices_of(task, item);
    size_t right;
    int bad = right_of(task, item, choices, &right, e);
    if (!bad)
        buf_format(to, " %s", json_string_value(json_array_get(choices, right)));
    json_decref(choices);
    return bad;
}

/* Appends the text as a message of a role, and clears the text. */
static void say(json_t *messages, const char *role, struct buf *text)
{
    json_array_append_new(messages, json_pack("{s:s, s:s}", "role", role, "content",
                                              text->len ? text->data : ""));
    buf_clear(text);
}

/* Writes header, examples and question: as one text, or as turns in `messages`. */
static int put_prompt(const struct task *task, const json_t *item, struct buf *text,
                      json_t *messages, struct err *e)
{
    const char *examples = rec_text(task->row, "examples"), *own = rec_text(task->row, "between");
    const json_t *list = examples ? json_at(item, examples) : task->shown;
    int turns = json_is_true(json_object_get(task->row, "turns"));
    if (render(task, HEADER, item, text, e))
        return -1;
    for (size_t i = 0; i < json_array_size(list) && (int64_t)i < task->shots; i++) {
        const json_t *one = json_array_get(list, i);
        if (put_question(task, one, text, e))
            return err_prefix(e, "example %zu", i + 1);
        if (turns)
            say(messages, "user", text);
        if (put_shown(task, one, text, e))
            return err_prefix(e, "example %zu", i + 1);
        if (turns)
            say(messages, "assistant", text);
        else
            buf_text(text, own ? own : "\n\n");
    }
    if (put_question(task, item, text, e))
        return -1;
    if (turns)
        say(messages, "user", text);
    return 0;
}

static int put_choices(const struct task *task, const json_t *item, json_t *out, struct err *e)
{
    json_t *choices = choices_of(task, item);
    size_t right;
    int bad = right_of(task, item, choices, &right, e);
    if (!bad)
        rec_set_int(out, "right_choice", (int64_t)right);
    json_object_set_new(out, "choices", choices);
    return bad;
}

int task_fill(const struct task *task, const json_t *item, json_t *out, struct err *e)
{
    struct buf text = {0}, answer = {0};
    json_t *messages = json_array();
    int bad = put_prompt(task, item, &text, messages, e) ||
              (json_object_get(task->row, "choices") && put_choices(task, item, out, e)) ||
              render(task, ANSWER, item, &answer, e);
    json_object_set_new(out, "task", json_string(task->name));
    rec_set_int(out, "shots", task->shots);
    if (json_array_size(messages))
        json_object_set(out, "messages", messages);
    else
        json_object_set_new(out, "text", json_string(text.len ? text.data : ""));
    if (task->form[ANSWER])
        json_object_set_new(out, "answer", json_string(answer.len ? answer.data : ""));
    json_decref(messages);
    buf_free(&answer);
    buf_free(&text);
    return bad ? -1 : 0;
}

int task_leaves_out(const struct task *task, const json_t *item, struct err *e)
{
    struct buf why = {0};
    int out = render(task, LEAVE_OUT, item, &why, e);
    if (!out && why.len) {
        out = 1;
        rec_set_int(task->left_out, why.data, rec_int(task->left_out, why.data, 0) + 1);
    }
    buf_free(&why);
    return out;
}

const json_t *task_left_out(const struct task *task)
{
    return task->left_out;
}
