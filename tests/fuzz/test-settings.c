/* test-settings.c - feeds arbitrary settings: lists of an option, members of a schedule's point,
 * files of options, and the schedule that a run extends. The first byte chooses the kind. */
#include "lib/record/json.h"
#include "lib/record/rec.h"
#include "lib/setting/launches.h"
#include "lib/setting/optfile.h"
#include "lib/setting/system.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/memory.h"

static int fuzz_seed(size_t i, struct buf *to)
{
    static const char *const text[] = {
        "asteps=8,16,32\ngen_length=64\nunmask=schedule,threshold\nthreshold=0.5,9e-1\n",
        "acache=dual,none\nblock_length=8\ntemperature=0,0.5\nstop_at_eos=on,off\n",
        "amax_new=32\nlookup=4\ndraft=2\nadmit=continuous\n",
        "b{\"steps\":16,\"gen_length\":64,\"unmask\":\"factor\",\"stop_at_eos\":true,"
        "\"block_length\":null}\n",
        "b{\"max_new\":8,\"temperature\":0.5,\"contract\":\"fixed\"}\n",
        "c{\"steps\":[8,16],\"seed\":7,\"quiet\":true,\"stop_at_eos\":\"on\",\"output\":\"x\"}\n",
        "d{\"kind\":\"launch\",\"launch\":0,\"system\":\"llada\",\"seed\":1,\"rounds\":1,"
        "\"points\":[{\"round\":0,\"steps\":8,\"gen_length\":16}]}\n"
        "{\"kind\":\"launch\",\"launch\":1,\"system\":\"llama\",\"seed\":2,\"rounds\":1,\"points\":"
        "[{\"round\":0,\"max_new\":16}]}\n"};
    if (i < sizeof text / sizeof *text)
        buf_text(to, text[i]);
    return to->len > 0;
}

/* An accepted point belongs to its table, and is the same after it was written and read again. */
static void use(const struct settings *s)
{
    struct settings again = *s;
    struct err e = {0};
    struct buf label = {0};
    json_t *said = settings_said(s), *record = json_object();
    size_t fields = 0;
    for (size_t i = 0; i < s->table->n; i++) {
        const struct setting *r = &s->table->row[i];
        fuzz_check(!isnan(s->v[i]));
        if (r->type == SETTING_INT || r->type == SETTING_REAL)
            fuzz_check(s->v[i] >= r->lo && s->v[i] <= r->hi);
        char word[SETTINGS_WORD] = "x";
        if (r->type == SETTING_CHOICE)
            settings_word(s, i, word);
        fuzz_check(*word);
        fields += !(r->traits & SETTING_CONDITION);
    }
    settings_put(s, record);
    fuzz_check(json_object_size(record) == fields);
    settings_label(s, &label);
    settings_axis(s);
    fuzz_check(!settings_read(&again, said, "again", &e) && settings_same(s, &again));
    buf_free(&label);
    json_decref(said);
    json_decref(record);
}

static const struct settings_table *table_of(size_t i)
{
    size_t n = 0;
    while (systems[n])
        n++;
    return systems[i % n];
}

/* Reads lines NAME=LIST, and crosses the lists in every table. */
static void as_lists(const char *bytes, size_t n)
{
    static struct mutate_lines l;
    struct buf all = {0};
    buf_put(&all, bytes, n);
    buf_char(&all, '\n');
    mutate_split(&all, &l);
    for (size_t d = 0; systems[d]; d++) {
        const struct settings_table *t = systems[d];
        const char *given[SETTINGS_MAX] = {0};
        struct settings *point = NULL;
        struct err e = {0};
        size_t points;
        char *text[SETTINGS_MAX] = {0};
        for (size_t i = 0; i < l.n; i++) {
            char *line = mem_format("%.*s", (int)l.v[i].n - 1, l.v[i].s), *at = strchr(line, '=');
            size_t row = at ? (*at = 0, settings_find(t, line)) : t->n;
            if (row < t->n) {
                free(text[row]);
                given[row] = text[row] = mem_text(at + 1);
            }
            free(line);
        }
        if (settings_cross(t, given, &point, &points, &e))
            fuzz_check_refused(&e);
        else
            fuzz_check(points && points <= SETTINGS_POINTS);
        for (size_t i = 0; !e.code && i < points && i < 8; i++)
            use(&point[i]);
        free(point);
        for (size_t i = 0; i < SETTINGS_MAX; i++)
            free(text[i]);
    }
    buf_free(&all);
}

static void as_point(const char *bytes, size_t n)
{
    struct err e = {0};
    json_t *o = json_bytes(bytes, n, "x", &e);
    if (!o)
        fuzz_check_refused(&e);
    for (size_t i = 0; json_is_object(o) && i < 3; i++) {
        const char *given[SETTINGS_MAX] = {0};
        struct settings *point;
        struct err why = {0};
        size_t points;
        fuzz_check(!settings_cross(table_of(i), given, &point, &points, &why));
        if (settings_read(point, o, "x", &why))
            fuzz_check_refused(&why);
        else
            use(point);
        free(point);
    }
    json_decref(o);
}

static void as_options(const char *path)
{
    struct common c = COMMON_DEFAULTS;
    const char *given[SETTINGS_MAX] = {0};
    struct settings_texts texts = {0};
    struct optfile f = {0};
    struct err e = {0};
    struct opt options[SETTINGS_MAX + 32] = {OPT_COMMON(c)};
    size_t n = 0;
    while (options[n].name)
        n++;
    settings_options(table_of(1), given, options + n, &texts);
    const struct tool t = {"fuzz", "x", "x", "x", options, NEEDS_NOTHING};
    if (optfile_read(&f, &t, path, &e))
        fuzz_check_refused(&e);
    optfile_free(&f);
    settings_texts_free(&texts);
}

/* Reads the launches of an earlier run, and adds two. */
static void as_schedule(const char *path)
{
    struct launches_given g = {0};
    struct launches p = {.launches = 2, .rounds = 1, .seed = 7};
    struct err e = {0}, why = {0};
    json_t *previous = json_array(), *r, *list = NULL;
    struct rec_reader *in = rec_read_open(&path, 1, &e);
    while (in && rec_read(in, &r, &why) > 0)
        json_array_append_new(previous, r);
    rec_read_close(in);
    launches_say(&g, "steps", "4,8");
    fuzz_check(!launches_systems(&p, "llada,llama", &e) && !launches_points(&p, &g, NULL, &e));
    if (!(list = launches_schedule(&p, previous, &e)))
        fuzz_check_refused(&e);
    size_t i;
    json_array_foreach(list, i, r)
        fuzz_check(rec_int(r, "launch", -1) >= 0 && json_object_get(r, "points"));
    json_decref(list);
    json_decref(previous);
    launches_free(&p);
}

static void fuzz_one(const char *bytes, size_t n)
{
    if (!n)
        return;
    const char *path = MEMORY_FOLDER;
    memory_put(0, path, bytes + 1, n - 1);
    switch (*bytes % 4) {
    case 'a' % 4: as_lists(bytes + 1, n - 1); break;
    case 'b' % 4: as_point(bytes + 1, n - 1); break;
    case 'c' % 4: as_options(path); break;
    case 'd' % 4: as_schedule(path); break;
    }
}

FUZZ_TARGET("settings", 200)
