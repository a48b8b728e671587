/* figure-trace.c - draws one answer from pass to pass: the slots that each pass commits, and the
 * confidence of the model. Each panel is a configuration that answered the same prompt. All panels
 * have the same axes.
 *
 * A slot is final from the pass that commits it to the pass before it is masked again, or to the
 * last pass. Such a span of passes is drawn as one row; masked slots show the background. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/about.h"
#include "lib/analysis/words/display.h"
#include "lib/base/mem.h"
#include "lib/figure/figure.h"
#include "lib/record/rec.h"
#include "lib/stat/stat.h"

enum { PANELS = 4, MOST = 1 << 16 /* slots, passes */, TIPS = 1024 };

struct trace_panel {
    const char *point, *config; /* borrowed */
    int64_t slots, block, passes, tokens;
    int64_t *since;             /* [slots] the pass that committed the slot; 0: masked */
    double *confidence;         /* [slots] confidence in that pass; NaN: unknown */
    double *all;                /* [n] the confidences of all commits */
    size_t n, cap;
    struct reopened { double slot, pass; } *again;
    size_t n_again, cap_again;
    int place, tips; /* number of the panel, from 1; number of its texts for a pointer so far */
};

/* ---- records ---- */

static int is_drawable(const json_t *record)
{
    int64_t slots = rec_int(record, "slot_count", 0), pass = rec_int(record, "pass", 0);
    return about_point(record) && slots > 0 && slots <= MOST && pass > 0 && pass <= MOST;
}

/* Finds the answer (of prompt *id, or the first answer; sets *id) and its panels, in the order of
 * the records. Returns the number of panels. */
static int find_panels(const json_t *records, const char **id, struct trace_panel *list)
{
    size_t i;
    const json_t *record;
    int n = 0;
    json_array_foreach(records, i, record) {
        const char *prompt = rec_text(record, "id"), *config = rec_text(record, "config");
        int at = 0;
        if (!prompt || !is_drawable(record) || (*id && strcmp(prompt, *id)))
            continue;
        *id = prompt;
        while (at < n && strcmp(list[at].point, about_point(record)))
            at++;
        if (at < n || n == PANELS)
            continue;
        list[n] = (struct trace_panel){.point = about_point(record), .config = config ? config : "",
                                   .slots = rec_int(record, "slot_count", 0),
                                   .block = rec_int(record, "block_length", 0), .place = n + 1};
        n++;
    }
    return n;
}

/* ---- one answer ---- */

static void put_tip(struct figure *figure, const struct trace_panel *panel, int64_t slot, double c)
{
    const double x = (double)slot, y = (double)panel->since[slot], corner[2] = {x + 0.5, y + 0.5};
    char *sure = isnan(c) ? mem_text("") : mem_format(", confidence %.2f", c);
    figure_tip(figure, panel->place, x - 0.5, y - 0.5, corner, "slot %.0f: final in pass %.0f%s", x,
               y, sure);
    free(sure);
}

/* Ends the span of a slot at pass `last` and writes it. Does nothing if the slot is masked. */
static void put_span(struct figure *figure, struct trace_panel *panel, int64_t slot, int64_t last)
{
    if (!panel->since[slot])
        return;
    double c = panel->confidence[slot];
    char digit[2] = {isnan(c) ? '?' : (char)('0' + (int)fmin(9, 10 * fmax(c, 0))), 0};
    script_row(&figure->script, "nnnnt", (double)slot, (double)panel->since[slot], (double)last, c,
               digit);
    if (panel->tips++ < TIPS)
        put_tip(figure, panel, slot, c);
    panel->since[slot] = 0;
}

static int64_t slot_at(const json_t *list, size_t i, const struct trace_panel *panel)
{
    const json_t *value = json_array_get(list, i);
    json_int_t slot = json_is_integer(value) ? json_integer_value(value) : -1;
    return slot < panel->slots ? (int64_t)slot : -1;
}

static void take_commits(struct figure *figure, struct trace_panel *panel, const json_t *record,
                         int64_t pass)
{
    const json_t *slots = json_object_get(record, "slots"),
                 *sure = json_object_get(record, "confidences");
    for (size_t i = 0; i < json_array_size(slots); i++) {
        int64_t slot = slot_at(slots, i, panel);
        const json_t *value = json_array_get(sure, i);
        if (slot < 0) {
            figure->script.skipped++;
            continue;
        }
        put_span(figure, panel, slot, pass - 1); /* a new id may come without a mask before it */
        panel->since[slot] = pass;
        panel->tokens++;
        panel->confidence[slot] = json_is_number(value) ? json_number_value(value) : (double)NAN;
        if (!json_is_number(value))
            continue;
        MEM_GROW(panel->all, panel->n, panel->cap);
        panel->all[panel->n++] = json_number_value(value);
    }
}

static void take_masked(struct figure *figure, struct trace_panel *panel, const json_t *record,
                        int64_t pass)
{
    const json_t *slots = json_object_get(record, "masked_slots");
    for (size_t i = 0; i < json_array_size(slots); i++) {
        int64_t slot = slot_at(slots, i, panel);
        if (slot < 0) {
            figure->script.skipped++;
            continue;
        }
        put_span(figure, panel, slot, pass - 1);
        MEM_GROW(panel->again, panel->n_again, panel->cap_again);
        panel->again[panel->n_again++] = (struct reopened){(double)slot, (double)pass};
    }
}

/* Writes the rows of a panel. Skips a record whose pass number does not rise, because it belongs to
 * another run. */
static void put_panel(struct figure *figure, struct trace_panel *panel, const json_t *records,
                      const char *id)
{
    size_t i;
    const json_t *record;
    panel->since = mem_zero((size_t)panel->slots, sizeof *panel->since);
    panel->confidence = mem_zero((size_t)panel->slots, sizeof *panel->confidence);
    json_array_foreach(records, i, record) {
        int64_t pass = rec_int(record, "pass", 0);
        const char *prompt = rec_text(record, "id");
        if (!prompt || strcmp(prompt, id) || !is_drawable(record) ||
            strcmp(panel->point, about_point(record)))
            continue;
        if (pass <= panel->passes) {
            figure->script.skipped++;
            continue;
        }
        panel->passes = pass;
        take_masked(figure, panel, record, pass);
        take_commits(figure, panel, record, pass);
    }
    for (int64_t slot = 0; slot < panel->slots; slot++)
        put_span(figure, panel, slot, panel->passes);
    script_next(&figure->script, 5);
}

static void put_again(struct script *script, const struct trace_panel *list, int n)
{
    script_table(script, "again", "slot pass");
    for (int k = 0; k < n; k++) {
        for (size_t i = 0; i < list[k].n_again; i++)
            script_row(script, "nn", list[k].again[i].slot, list[k].again[i].pass);
        script_next(script, 2);
    }
    script_table_end(script);
}

/* ---- words ---- */

static int has_word(const char *text, const char *word, size_t n)
{
    for (const char *bytes = text; *bytes;
         bytes += strcspn(bytes, " "), bytes += strspn(bytes, " "))
        if (strcspn(bytes, " ") == n && !strncmp(bytes, word, n))
            return 1;
    return 0;
}

/* The words of panel k's label that all labels have (wanted 1) or that not all have (wanted 0). If
 * there are no such words, the whole label. The caller frees. */
static char *words_of(const struct trace_panel *list, int n, int k, int wanted)
{
    struct buf text = {0};
    for (const char *bytes = list[k].config; *bytes;
         bytes += strcspn(bytes, " "), bytes += strspn(bytes, " ")) {
        size_t len = strcspn(bytes, " ");
        int shared = 1;
        for (int j = 0; j < n; j++)
            shared &= has_word(list[j].config, bytes, len);
        if (shared == wanted && len) {
            buf_text(&text, text.len ? " " : "");
            buf_put(&text, bytes, len);
        }
    }
    return text.data ? text.data : mem_text(list[k].config);
}

static void say_shared(struct figure *figure, const struct trace_panel *list, int n)
{
    if (n < 2)
        return;
    char *words = words_of(list, n, 0, 1), *clean = display_cleaned(words, 200);
    figure_say(figure, "All panels: %s.", clean);
    free(clean);
    free(words);
}

static void say_panel(struct figure *figure, struct trace_panel *panel, const char *name)
{
    char *sure = panel->n
                     ? mem_format(", median confidence %.2f", stat_median(panel->all, panel->n))
                     : mem_text("");
    char *again = panel->n_again ? mem_format(", %zu masked again", panel->n_again) : mem_text("");
    figure_say(figure, "%s: %lld token%s in %lld pass%s%s%s.", name, (long long)panel->tokens,
               figure_plural((double)panel->tokens), (long long)panel->passes,
               panel->passes == 1 ? "" : "es", sure, again);
    free(sure);
    free(again);
}

void figure_trace(struct figure *figure, const struct runset *set,
                  const struct figure_request *request)
{
    struct trace_panel list[PANELS];
    const json_t *records = runset_kind(set, "commit");
    const char *id = request->id;
    char *title[PANELS];
    double passes[PANELS], again[PANELS], most_slots = 1, most_passes = 1, reopened = 0;
    int n = find_panels(records, &id, list);
    figure->why = n ? NULL : request->id ? "no commit record has the id of --id" : NULL;
    char *of = display_cleaned(id ? id : "", 60);
    if (n)
        figure_say(figure,
                   "Tokens that each pass commits in the answer to prompt %s. Columns are "
                   "slots; passes run downwards. Light: masked. Grey: final. Coloured: the pass "
                   "that commits the token, by the probability of the token in the model%s.",
                   of, list[0].block > 0 ? "; lines: blocks" : "");
    script_table(&figure->script, "spans", "slot pass last confidence digit");
    for (int k = 0; k < n; k++)
        put_panel(figure, &list[k], records, id);
    script_table_end(&figure->script);
    put_again(&figure->script, list, n);
    for (int k = 0; k < n; k++) {
        char *own = words_of(list, n, k, n == 1), *name = display_cleaned(own, 200);
        passes[k] = (double)list[k].passes;
        most_slots = fmax(most_slots, (double)list[k].slots);
        most_passes = fmax(most_passes, passes[k]);
        again[k] = (double)list[k].n_again;
        reopened += again[k];
        title[k] = display_cleaned(own, 40);
        say_panel(figure, &list[k], name);
        free(name);
        free(own);
    }
    say_shared(figure, list, n);
    free(of);
    if (reopened > 0)
        figure_say(figure, "Crosses: masked again.");
    script_texts(&figure->script, "panel_title", (const char *const *)title, n);
    script_numbers(&figure->script, "panel_passes", passes, n);
    script_numbers(&figure->script, "panel_again", again, n);
    script_number(&figure->script, "panel_count", n);
    script_number(&figure->script, "slot_count", most_slots);
    script_number(&figure->script, "pass_count", most_passes);
    script_number(&figure->script, "block_length", n ? (double)list[0].block : 0);
    for (int k = 0; k < n; k++) {
        free(title[k]);
        free(list[k].since);
        free(list[k].confidence);
        free(list[k].all);
        free(list[k].again);
    }
}
