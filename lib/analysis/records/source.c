/* source.c - see source.h. The marks are members whose names begin with a space, so no record of a
 * stream has them. A mark of a machine has its name and its fingerprint: two machines may have one
 * name, and in older records machines with different processors share a fingerprint. */
#include "lib/analysis/records/source.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/about.h"
#include "lib/base/mem.h"
#include "lib/record/machine/processor.h"
#include "lib/record/rec.h"

static const char machine_mark[] = " machine", file_mark[] = " file";

/* If the record is a meta or parent record, notes the machine of the records after it. */
static void note_machine(struct source *source, const json_t *record)
{
    const char *kind = rec_kind(record);
    if (strcmp(kind, "meta") && strcmp(kind, "parent"))
        return;
    const json_t *machine = json_object_get(record, "machine");
    const char *print = rec_text(machine, "fingerprint");
    char *cpu = processor_name(machine);
    if (print) {
        free(source->machine);
        source->machine = mem_format("%s, %lld cores (%s)", cpu ? cpu : "a processor",
                                     (long long)rec_int(machine, "cores", 0), print);
    }
    free(cpu);
}

json_t *source_mark(struct source *source, const json_t *record, const char *where)
{
    const char *line = strrchr(where, ':');
    note_machine(source, record);
    json_t *r = json_copy((json_t *)(uintptr_t)record);
    if (source->machine)
        json_object_set_new(r, machine_mark, json_string(source->machine));
    if (line) /* a name that is not UTF-8 gives no mark */
        json_object_set_new(r, file_mark, json_stringn(where, (size_t)(line - where)));
    return r;
}

int source_single(struct source *source, const json_t *record, int counts, struct err *e)
{
    const char *kind = rec_kind(record), *tool = rec_text(record, "tool");
    if (!strcmp(kind, "meta") || !strcmp(kind, "end")) {
        free(source->machine); /* unknown until a record names it */
        source->machine = NULL;
    }
    /* prep-prompts and others time nothing; gen-endpoint names the machine of the client */
    if (strcmp(kind, "parent") ||
        (tool && !strncmp(tool, "gen-", 4) && strcmp(tool, "gen-endpoint")))
        note_machine(source, record);
    if (!counts || !source->machine)
        return 0;
    source->first = source->first ? source->first : mem_text(source->machine);
    return strcmp(source->first, source->machine)
               ? err_set(e, EXIT_BAD_DATA, "times of %s, after times of %s: compare times of one "
                         "machine", source->machine, source->first)
               : 0;
}

void source_free(struct source *source)
{
    free(source->machine);
    free(source->first);
    *source = (struct source){0};
}

int source_is_of_machine(const char *metric)
{
    static const char *const patterns[] = {"*_ns", "*_ns_*", "*_per_s", "*_per_s_*", "*energy*",
                                           "*_j", "*_j_*", "*power*", "mfu", "mbu"};
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
        if (!fnmatch(patterns[i], metric, 0))
            return 1;
    return 0;
}

int source_is_measured(const json_t *record)
{
    const char *kind = rec_kind(record), *metric = rec_text(record, "metric");
    return (!strcmp(kind, "times") ||
            (!strcmp(kind, "metric") && metric && source_is_of_machine(metric))) &&
           !*about_stack(record);
}

const char *source_machine(const json_t *record)
{
    return rec_text(record, machine_mark);
}

static int agrees(const json_t *x, const json_t *y, const char *mark)
{
    const char *a = rec_text(x, mark), *b = rec_text(y, mark);
    return a && b ? !strcmp(a, b) : a == b;
}

int source_same_machine(const json_t *a, const json_t *b)
{
    return agrees(a, b, machine_mark);
}

int source_same_file(const json_t *a, const json_t *b)
{
    return agrees(a, b, file_mark);
}

void source_copy(json_t *to, const json_t *from)
{
    const char *const marks[] = {machine_mark, file_mark};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (json_object_get(from, marks[i]))
            json_object_set(to, marks[i], json_object_get(from, marks[i]));
}
