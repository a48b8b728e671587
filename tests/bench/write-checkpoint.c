/* write-checkpoint - writes a synth: shape as a checkpoint folder in bf16, with its random
 * weights, to measure how fast files of this size are loaded. The folder has no tokenizer.
 *
 * Tensors are written one after another, so memory must hold only one of them, widened. */
#include <stdlib.h>
#include <string.h>

#include "kernels/host.h"
#include "lib/base/file.h"
#include "lib/base/mem.h"
#include "lib/base/cli/opt.h"
#include "lib/base/out.h"
#include "lib/checkpoint/safetensors.h"
#include "lib/checkpoint/checkpoint.h"
#include "lib/checkpoint/family.h"

struct writing {
    const struct checkpoint *from;
    struct tensor *list;
    size_t n;
    struct out out;
};

static void add(struct writing *w, enum role r, size_t layer)
{
    const struct config *c = &w->from->config;
    struct tensor *t = &w->list[w->n++];
    char name[FAMILY_NAME_MAX];
    size_t rows, cols;
    family_tensor_name(name, c->family->naming[0], c, r, layer);
    role_shape(c, r, &rows, &cols);
    *t = (struct tensor){.name = mem_text(name), .dtype = "BF16", .rank = role_is_vector(r) ? 1 : 2,
                         .shape = {rows, cols}, .bytes = 2 * rows * cols};
}

/* Write errors are found when the file is committed. */
static void write_values(struct writing *w, enum role r, size_t layer)
{
    size_t rows, cols;
    role_shape(&w->from->config, r, &rows, &cols);
    float *x = mem_alloc(rows * cols * sizeof *x);
    uint16_t *half = mem_alloc(cols * sizeof *half);
    checkpoint_floats(w->from, r, layer, x);
    for (size_t i = 0; i < rows; i++) {
        for (size_t k = 0; k < cols; k++)
            half[k] = bf16_of(x[i * cols + k]);
        fwrite(half, sizeof *half, cols, w->out.f);
    }
    free(half);
    free(x);
}

static void each(struct writing *w, void (*call)(struct writing *w, enum role r, size_t layer))
{
    const struct config *c = &w->from->config;
    for (int r = 0; r < ROLE_COUNT; r++)
        for (size_t l = 0; l < role_tensors(c, (enum role)r) && !(r == ROLE_HEAD && c->tied); l++)
            call(w, (enum role)r, l);
}

/* Writes config.json last: a folder with this file is complete. */
static int write_folder(struct writing *w, const char *folder, struct err *e)
{
    char *path = mem_format("%s/model.safetensors", folder);
    json_t *metadata = json_pack("{s:s}", "format", "pt");
    int bad = file_make_folder(folder, e) ||
              safetensors_begin(&w->out, path, w->list, w->n, metadata, e);
    if (!bad) {
        each(w, write_values);
        bad = out_commit(&w->out, e) || family_save(&w->from->config, folder, e);
    }
    json_decref(metadata);
    free(path);
    return bad ? -1 : 0;
}

static int run(const char *shape, const char *folder, struct err *e)
{
    struct checkpoint c = {0};
    char *name = mem_format("synth:%s", shape);
    struct writing w = {.from = &c};
    int bad = checkpoint_open(&c, name, 0, e);
    free(name);
    if (!bad) {
        w.list = mem_zero(ROLE_COUNT * role_tensors_most(&c.config), sizeof *w.list);
        each(&w, add);
        bad = write_folder(&w, folder, e);
        for (size_t i = 0; i < w.n; i++)
            free(w.list[i].name);
        free(w.list);
    }
    checkpoint_close(&c);
    return bad ? -1 : 0;
}

int main(int argc, char **argv)
{
    const char *shape = NULL;
    const struct opt options[] = {
        {"shape", 's', OPT_TEXT, &shape, .arg = "SHAPE", .help = "a shape of -m synth:SHAPE"},
        {0}};
    const struct tool tool = {"write-checkpoint", "a synth: shape in, its checkpoint out",
                              "write-checkpoint --shape llama3-8b build/checkpoint/llama3-8b\n",
                              NULL, options, NEEDS_NOTHING};
    int first = opt_parse(&tool, argc, argv);
    struct err e = {0};
    if (!shape || argc - first != 1)
        opt_usage(&tool, "expected --shape and one folder to write, got %d", argc - first);
    if (run(shape, argv[first], &e))
        err_die(tool.name, &e);
    return 0;
}
