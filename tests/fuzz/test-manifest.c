/* test-manifest.c - feeds lists of files: the manifest of a bundle names only files below one
 * folder and is the same after it was printed and parsed again; and origin.json of a packed
 * model. */
#include "lib/checkpoint/provenance.h"
#include "lib/record/manifest.h"
#include "tests/fuzz/memory.h"

#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static int fuzz_seed(size_t i, struct buf *to)
{
    static const char *const text[] = {
        "# sealed by bundle; sha256sum -c reads it\n# outside " HEX "  /data/x.gz\n"
        HEX "  a/b.ndjson\n" HEX "  c.svg\n",
        HEX "  a\n" HEX "  ../b\n",
        "{\"model\":\"m\",\"files\":[{\"name\":\"a\",\"bytes\":1,\"sha256\":\"" HEX "\"}],"
        "\"quant\":\"none\",\"pruning\":{\"score\":\"activation\",\"heads_share\":0.5,"
        "\"ffn_share\":0.5,\"calibration\":[],\"removed\":[{\"query\":[0,1],\"key\":[0],"
        "\"unit\":[1,2,5]},{\"query\":[2,3],\"key\":[1],\"unit\":[0,3,4]}]}}",
    };
    if (i < sizeof text / sizeof *text)
        buf_text(to, text[i]);
    return to->len > 0;
}

static void as_manifest(const char *bytes, size_t n)
{
    struct manifest m, again;
    struct buf text = {0}, one = {0}, two = {0};
    struct err e = {0};
    manifest_start(&m);
    manifest_start(&again);
    buf_put(&text, bytes, n);
    if (manifest_parse(&m, &text, &e)) {
        fuzz_check_refused(&e);
    } else {
        for (size_t i = 0; i < m.n; i++)
            fuzz_check(*m.v[i].name != '/' && strncmp(m.v[i].name, "../", 3) &&
                       !strstr(m.v[i].name, "/../"));
        manifest_print(&m, &one);
        buf_clear(&text);
        buf_put(&text, one.data, one.len);
        fuzz_check(!manifest_parse(&again, &text, &e) && again.n == m.n);
        manifest_print(&again, &two);
        fuzz_check(one.len == two.len && !memcmp(one.data, two.data, one.len));
    }
    manifest_free(&m);
    manifest_free(&again);
    buf_free(&text);
    buf_free(&one);
    buf_free(&two);
}

static void as_origin(const char *bytes, size_t n)
{
    struct err e = {0};
    struct prune p = {0};
    const struct config c = {.width = 8, .layers = 2, .heads = 4, .kv_heads = 2, .head_dim = 2,
                             .ffn = 6, .vocab = 8};
    memory_put(0, MEMORY_FOLDER "/" PROVENANCE, bytes, n);
    json_t *origin = provenance_read(MEMORY_FOLDER, &e);
    int is = origin ? provenance_pruning(origin, &c, &p, &e) : -1;
    if (is < 0)
        fuzz_check_refused(&e);
    if (is > 0)
        prune_free(&p);
    json_decref(origin);
}

static void fuzz_one(const char *bytes, size_t n)
{
    as_manifest(bytes, n);
    as_origin(bytes, n);
}

FUZZ_TARGET("manifest", 1000)
