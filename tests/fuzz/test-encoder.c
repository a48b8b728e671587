/* test-encoder.c - feeds config.json of a BERT or RoBERTa checkpoint whose tensors and tokenizer
 * are valid: an encoder that opens gives finite vectors for a text. */
#include "lib/network/encoder.h"
#include "tests/fixtures/encoder.h"
#include "tests/fuzz/memory.h"

static const char *const folders[] = {"bert", "roberta"};

/* Both kinds of checkpoint, each in its folder. */
static void write_folders(void)
{
    for (int i = 0; i < 2; i++) {
        mkdir(files_at(folders[i]), 0700);
        encoder_write(files_at(folders[i]), i);
    }
}

static int fuzz_seed(size_t i, struct buf *to)
{
    if (i > 1)
        return 0;
    write_folders();
    char *path = mem_format("%s/config.json", files_at(folders[i]));
    if (file_read(path, 1 << 20, to, NULL))
        files_fail(path);
    free(path);
    return 1;
}

static void use(struct encoder *n)
{
    struct ids ids = {0};
    struct err e = {0};
    if (encoder_ids(n, "a boat and a cat", &ids, &e) < 0) {
        fuzz_check_refused(&e);
        return;
    }
    float *out = mem_zero(ids.n * n->width, sizeof *out);
    if (encoder_run(n, &ids, out, &e))
        fuzz_check_refused(&e);
    for (size_t i = 0; !e.code && i < ids.n * n->width; i++)
        fuzz_check(isfinite(out[i]));
    free(out);
    ids_free(&ids);
}

static void fuzz_one(const char *bytes, size_t n)
{
    static struct backend *b;
    if (!b) {
        struct err e = {0};
        write_folders();
        b = backend_open("ref", NULL, 1, 0, &e);
        b->act = DTYPE_F32;
    }
    for (int i = 0; i < 2; i++) {
        struct encoder encoder;
        struct err e = {0};
        char *path = mem_format("%s/config.json", files_at(folders[i]));
        memory_put(0, path, bytes, n);
        if (encoder_open(&encoder, files_at(folders[i]), 0, b, &e)) {
            fuzz_check_refused(&e);
        } else {
            use(&encoder);
            encoder_close(&encoder);
        }
        free(path);
        fuzz_check(b->memory.requested == 0);
    }
}

FUZZ_TARGET("encoder", 150)
