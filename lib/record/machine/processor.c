/* processor.c - see processor.h. The first block of /proc/cpuinfo is read as a table of keys and
 * texts; x86 and arm64 name the keys differently. A missing file is an empty table. */
#include "lib/record/machine/processor.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/mem.h"

/* ---- values from the system ---- */

static const char *text_in(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

/* Removes blanks at both ends, in place. Returns the new beginning. */
static char *trim(char *text)
{
    char *end = text + strlen(text);
    while (isspace((unsigned char)*text))
        text++;
    while (end > text && isspace((unsigned char)end[-1]))
        *--end = 0;
    return text;
}

/* Returns key -> text: the first value of each key. Reading stops after the block of the first
 * processor if that has a "model name". Else it goes on, because the name of the board comes later.
 * The caller's reference. */
static json_t *cpuinfo_of(const char *root)
{
    char *path = mem_format("%s/proc/cpuinfo", root), *line = NULL;
    FILE *file = fopen(path, "r");
    size_t room = 0;
    json_t *all = json_object();
    while (file && getline(&line, &room, file) >= 0) {
        char *colon = strchr(line, ':');
        if (!colon && json_object_get(all, "model name"))
            break;
        if (!colon)
            continue;
        *colon = 0;
        const char *key = trim(line);
        if (!json_object_get(all, key))
            json_object_set_new(all, key, json_string(trim(colon + 1))); /* no UTF-8: not set */
    }
    if (file)
        fclose(file);
    free(line);
    free(path);
    return all;
}

/* The value of the first present key of up to three; NULL: none is present. */
static const char *find_value(const json_t *all, const char *const key[3])
{
    const char *text = NULL;
    for (int i = 0; i < 3 && key[i] && !text; i++)
        text = text_in(all, key[i]);
    return text && *text ? text : NULL;
}

/* Returns a whole number, which may have a prefix like 0x; -1: no number. */
static int64_t number(const char *text)
{
    char *end;
    long long v = text ? strtoll(text, &end, 0) : -1;
    return text && end > text && !*end && v >= 0 ? v : -1;
}

/* The flags that levels and the loops of kernels/peak-*.c are chosen by, in the kernel's spelling,
 * sorted. The caller's. */
static char *flags_of(const char *text)
{
    static const char *const known[] = {
        "amx_bf16", "amx_int8", "amx_tile", "asimddp", "avx2", "avx512_bf16", "avx512_vnni",
        "avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vbmi", "avx512vl", "avx_vnni",
        "bf16", "bmi2", "f16c", "fma", "i8mm", "sve"};
    struct buf buffer = {0};
    char *words = mem_format(" %s ", text);
    buf_text(&buffer, "");
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        char *word = mem_format(" %s ", known[i]);
        if (strstr(words, word))
            buf_format(&buffer, "%s%s", buffer.len ? " " : "", known[i]);
        free(word);
    }
    free(words);
    return buffer.data;
}

/* "32K 32K 512K 32768K", in the system's order; NULL: not reported. The caller's. */
static char *caches_of(const char *root)
{
    enum { MOST = 16 };
    struct buf text = {0};
    for (int i = 0; i < MOST; i++) {
        char size[32] = "";
        char *path = mem_format("%s/sys/devices/system/cpu/cpu0/cache/index%d/size", root, i);
        FILE *file = fopen(path, "r");
        free(path);
        if (!file)
            break;
        if (fscanf(file, "%31s", size) == 1)
            buf_format(&text, "%s%s", text.len ? " " : "", size);
        fclose(file);
    }
    return text.data;
}

/* ---- microarchitectures ---- */

struct kind {
    const char *vendor;
    int64_t family, first, last; /* models */
    const char *name;
};

/* Source: Linux, arch/x86/kernel/cpu/amd.c and arch/x86/include/asm/intel-family.h;
 * arch/arm64/include/asm/cputype.h. */
static const struct kind kinds[] = {
    {"AuthenticAMD", 23, 0x00, 0x2f, "Zen"},
    {"AuthenticAMD", 23, 0x30, 0x4f, "Zen 2"},
    {"AuthenticAMD", 23, 0x50, 0x5f, "Zen"},
    {"AuthenticAMD", 23, 0x60, 0xaf, "Zen 2"},
    {"AuthenticAMD", 25, 0x00, 0x0f, "Zen 3"},
    {"AuthenticAMD", 25, 0x10, 0x1f, "Zen 4"},
    {"AuthenticAMD", 25, 0x20, 0x5f, "Zen 3"},
    {"AuthenticAMD", 25, 0x60, 0xaf, "Zen 4"},
    {"AuthenticAMD", 26, 0x00, 0x4f, "Zen 5"},
    {"AuthenticAMD", 26, 0x60, 0x7f, "Zen 5"},
    {"GenuineIntel", 6, 0x3f, 0x3f, "Haswell"},
    {"GenuineIntel", 6, 0x4f, 0x4f, "Broadwell"},
    {"GenuineIntel", 6, 0x56, 0x56, "Broadwell"},
    {"GenuineIntel", 6, 0x4e, 0x4e, "Skylake"},
    {"GenuineIntel", 6, 0x5e, 0x5e, "Skylake"},
    {"GenuineIntel", 6, 0x55, 0x55, "Skylake or Cascade Lake"},
    {"GenuineIntel", 6, 0x6a, 0x6a, "Ice Lake"},
    {"GenuineIntel", 6, 0x6c, 0x6c, "Ice Lake"},
    {"GenuineIntel", 6, 0x7d, 0x7e, "Ice Lake"},
    {"GenuineIntel", 6, 0x8c, 0x8d, "Tiger Lake"},
    {"GenuineIntel", 6, 0x8f, 0x8f, "Sapphire Rapids"},
    {"GenuineIntel", 6, 0x97, 0x97, "Alder Lake"},
    {"GenuineIntel", 6, 0x9a, 0x9a, "Alder Lake"},
    {"GenuineIntel", 6, 0xa7, 0xa7, "Rocket Lake"},
    {"GenuineIntel", 6, 0xad, 0xae, "Granite Rapids"},
    {"GenuineIntel", 6, 0xaf, 0xaf, "Sierra Forest"},
    {"GenuineIntel", 6, 0xb7, 0xb7, "Raptor Lake"},
    {"GenuineIntel", 6, 0xba, 0xba, "Raptor Lake"},
    {"GenuineIntel", 6, 0xcf, 0xcf, "Emerald Rapids"},
    {"0x41", 8, 0xd08, 0xd08, "Cortex-A72"},
    {"0x41", 8, 0xd0b, 0xd0b, "Cortex-A76"},
    {"0x41", 8, 0xd0c, 0xd0c, "Neoverse N1"},
    {"0x41", 8, 0xd40, 0xd40, "Neoverse V1"},
    {"0x41", 8, 0xd49, 0xd49, "Neoverse N2"},
    {"0x41", 8, 0xd4f, 0xd4f, "Neoverse V2"},
    {"0x41", 8, 0xd84, 0xd84, "Neoverse V3"},
    {"0x41", 8, 0xd8e, 0xd8e, "Neoverse N3"},
    {"0x61", 8, 0x022, 0x029, "Apple M1"},
    {"0x61", 8, 0x032, 0x039, "Apple M2"},
    {"0xc0", 8, 0xac3, 0xac3, "AmpereOne"},
    {"0xc0", 8, 0xac4, 0xac4, "AmpereOne A"},
};

static const char *kind_of(const char *vendor, int64_t family, int64_t model)
{
    for (size_t i = 0; vendor && i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(vendor, kinds[i].vendor) && family == kinds[i].family &&
            model >= kinds[i].first && model <= kinds[i].last)
            return kinds[i].name;
    return NULL;
}

static json_t *text_of(const char *text)
{
    return text ? json_string(text) : json_null();
}

static json_t *number_of(int64_t v)
{
    return v >= 0 ? json_integer((json_int_t)v) : json_null();
}

json_t *processor_describe(const char *root)
{
    static const char *const name[] = {"model name", "Model", "CPU part"};
    static const char *const vendor[] = {"vendor_id", "CPU implementer", NULL};
    static const char *const family[] = {"cpu family", "CPU architecture", NULL};
    static const char *const model[] = {"model", "CPU part", NULL};
    static const char *const stepping[] = {"stepping", "CPU revision", NULL};
    static const char *const flags[] = {"flags", "Features", NULL};
    json_t *all = cpuinfo_of(root);
    const char *maker = find_value(all, vendor), *words = find_value(all, flags);
    int64_t of = number(find_value(all, family)), is = number(find_value(all, model)),
            step = number(find_value(all, stepping)), variant = number(text_in(all, "CPU variant"));
    char *known = words ? flags_of(words) : NULL, *caches = caches_of(root);
    step += step >= 0 && variant > 0 ? 16 * variant : 0;
    json_t *processor = json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "cpu", text_of(find_value(all, name)),
        "cpu_vendor", text_of(maker), "cpu_family", number_of(of), "cpu_model", number_of(is),
        "cpu_stepping", number_of(step), "cpu_flags", text_of(known), "cpu_caches", text_of(caches),
        "microarchitecture", text_of(kind_of(maker, of, is)));
    free(known);
    free(caches);
    json_decref(all);
    return processor;
}

char *processor_name(const json_t *machine)
{
    const char *cpu = text_in(machine, "cpu"), *kind = text_in(machine, "microarchitecture");
    const json_t *family = json_object_get(machine, "cpu_family"),
                 *model = json_object_get(machine, "cpu_model");
    if (!cpu)
        return kind ? mem_text(kind) : NULL;
    if (kind)
        return mem_format("%s (%s)", cpu, kind);
    if (!json_is_integer(family) || !json_is_integer(model))
        return mem_text(cpu);
    return mem_format("%s (family %lld, model %lld)", cpu, (long long)json_integer_value(family),
                      (long long)json_integer_value(model));
}
