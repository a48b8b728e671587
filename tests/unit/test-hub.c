/* test-hub.c - tests look-ups in a made-up Hugging Face cache: which variable wins, names,
 * revisions, and messages about a missing model. */
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/file.h"
#include "lib/checkpoint/hub.h"
#include "tests/files.h"
#include "tests/tap.h"

#define HASH "0123456789abcdef0123456789abcdef01234567"

static void clear_environment(void)
{
    unsetenv("HF_HUB_CACHE");
    unsetenv("HUGGINGFACE_HUB_CACHE");
    unsetenv("HF_HOME");
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
}

/* Makes a repository "org/name" with one revision under root/<where>. */
static void make_cache(const char *where)
{
    struct err e = {0};
    char p[256];
    snprintf(p, sizeof p, "%s/models--org--name/refs", where);
    if (file_make_folder(files_at(p), &e))
        exit(1);
    snprintf(p, sizeof p, "%s/models--org--name/snapshots/" HASH, where);
    if (file_make_folder(files_at(p), &e))
        exit(1);
    snprintf(p, sizeof p, "%s/models--org--name/refs/main", where);
    files_put_text(files_at(p), HASH);
    snprintf(p, sizeof p, "%s/models--org--name/snapshots/" HASH "/config.json", where);
    files_put_text(files_at(p), "{}");
}

/* The name must be found below root/<where>. */
static void found(const char *name, const char *where, const char *what)
{
    struct err e = {0};
    char want[512];
    snprintf(want, sizeof want, "%s/%s/models--org--name/snapshots/" HASH, files_root, where);
    char *folder = hub_folder(name, &e);
    ok(folder && !strcmp(folder, want), "%s: %s%s", what, folder ? folder : "", e.text);
    free(folder);
}

static void missed(const char *name, const char *says)
{
    struct err e = {0};
    char *folder = hub_folder(name, &e);
    ok(!folder && e.code == EXIT_NO_INPUT && strstr(e.text, says), "%s: %s", name, e.text);
    free(folder);
}

static void test_roots(void)
{
    make_cache("explicit");
    make_cache("legacy");
    make_cache("home/hub");
    make_cache("xdg/huggingface/hub");
    make_cache("user/.cache/huggingface/hub");
    clear_environment();
    missed("org/name", "set HF_HOME");
    setenv("HOME", files_at("user"), 1);
    found("org/name", "user/.cache/huggingface/hub", "~/.cache");
    setenv("XDG_CACHE_HOME", files_at("xdg"), 1);
    found("org/name", "xdg/huggingface/hub", "XDG_CACHE_HOME wins over it");
    setenv("HF_HOME", files_at("home"), 1);
    found("org/name", "home/hub", "HF_HOME wins over that");
    setenv("HUGGINGFACE_HUB_CACHE", files_at("legacy"), 1);
    found("org/name", "legacy", "HUGGINGFACE_HUB_CACHE wins over that");
    setenv("HF_HUB_CACHE", files_at("explicit"), 1);
    found("org/name", "explicit", "HF_HUB_CACHE wins over all");
    setenv("HF_HUB_CACHE", "", 1);
    found("org/name", "legacy", "an empty variable counts as none");
}

static void test_revisions(void)
{
    clear_environment();
    setenv("HF_HUB_CACHE", files_at("explicit"), 1);
    struct err e = {0};
    file_make_folder(files_at("explicit/models--org--name/refs/pr"), &e);
    files_put_text(files_at("explicit/models--org--name/refs/pr/1"), HASH "\n");
    files_put_text(files_at("explicit/models--org--name/refs/broken"), "not a hash");
    found("org/name@main", "explicit", "a branch");
    found("org/name@" HASH, "explicit", "a commit");
    found("org/name@pr/1", "explicit", "a pull request, and a newline in the file");
    missed("org/name@v2", "hf download org/name --revision v2");
    missed("org/name@broken", "not in the cache");
    missed("org/other", "hf download org/other");
    missed("meta-llama/Meta-Llama-3-8B", "hf auth login");
    missed("gpt2", "hf download gpt2");
}

static void test_names(void)
{
    static const char *const bad[] = {"",
                                      "org/",
                                      "/name",
                                      "org/name/x",
                                      "../name",
                                      "org/..",
                                      "org/.",
                                      "./none",
                                      "org/na me",
                                      "org/name@",
                                      "org/name@../x",
                                      "org/name@a b",
                                      "org/name@/x",
                                      "org--x/name",
                                      "/no/such/folder"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        missed(bad[i], "org/name[@revision]");
    struct err e = {0};
    char *folder = hub_folder(files_root, &e);
    ok(folder && !strcmp(folder, files_root), "a folder is itself");
    free(folder);
    files_put_text(files_at("file"), "x");
    missed(files_at("file"), "expected a folder");
    if (!chdir(files_root) && !file_make_folder("org/name", &e)) {
        folder = hub_folder("org/name", &e);
        ok(folder && !strcmp(folder, "org/name"), "a folder that is there wins over the cache");
        free(folder);
    }
}

static void test_adapter(void)
{
    struct err e = {0};
    if (file_make_folder(files_at("lora"), &e))
        exit(1);
    files_put_text(files_at("lora/adapter_config.json"), "{\"peft_type\":\"LORA\"}");
    char *folder = hub_folder(files_at("lora"), &e);
    ok(!folder && e.code == EXIT_BAD_DATA && strstr(e.text, "merge it into its model"),
       "an adapter is refused by name: %s", e.text);
    free(folder);
}

static void test_partial(void)
{
    if (symlink("../../blobs/none",
                files_at("explicit/models--org--name/snapshots/" HASH "/model.safetensors")))
        exit(1);
    missed("org/name@main", "not complete");
}

int main(void)
{
    files_begin();
    test_roots();
    test_revisions();
    test_adapter();
    test_partial();
    test_names();
    files_end();
    return tap_done();
}
