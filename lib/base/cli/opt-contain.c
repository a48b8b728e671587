/* opt-contain.c - see opt_contain() in opt.h. The limits are set by Landlock and seccomp, where
 * Linux has them. A tool may read each path that is an operand or the value of an option, so a new
 * option needs no entry here. It may write a path only if the row of the option has `writes`. */
#include "lib/base/cli/opt.h"

#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/cli/log.h"
#include "lib/base/err.h"
#include "lib/base/file.h"
#include "lib/base/mem.h"
#include "lib/base/rights/filter.h"
#include "lib/base/rights/paths.h"
#include "lib/base/share.h"

/* Builds with a sanitizer or with coverage have no sandbox: LeakSanitizer starts a process that
 * traces this one, and coverage writes its files at the end. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__ || defined INSTRUMENTED
enum { CAN = 0 };
#else
enum { CAN = 1 };
#endif
enum { LINKS_DEEP = 4, LINKS_MOST = 20000 /* entries of folders that are looked at */ };

/* The value of an option that takes a text; "": the tool has no such option, or no value. */
static const char *text_of(const struct tool *t, const char *name)
{
    for (const struct opt *o = t->options; o->name; o++)
        if (!strcmp(o->name, name) && o->type != OPT_HEADING && *(const char **)o->to)
            return *(const char **)o->to;
    return "";
}

/* ---- files ---- */

/* Allows what the links of a folder name, down to LINKS_DEEP folders below it. */
static void allow_links(struct paths *p, const char *folder, int depth, int *left)
{
    DIR *d = opendir(folder);
    for (struct dirent *f; d && (f = readdir(d)) && --*left > 0;) {
        struct stat s;
        char *path = mem_format("%s/%s", folder, f->d_name);
        if (!strcmp(f->d_name, ".") || !strcmp(f->d_name, "..") || lstat(path, &s))
            ;
        else if (S_ISLNK(s.st_mode))
            paths_allow(p, path, PATHS_READ);
        else if (S_ISDIR(s.st_mode) && depth < LINKS_DEEP)
            allow_links(p, path, depth + 1, left);
        free(path);
    }
    if (d)
        closedir(d);
}

/* Allows to read a path; of a folder also what its links name, as in a cache of models. */
static void allow_input(struct paths *p, const char *path)
{
    int left = LINKS_MOST;
    paths_allow(p, path, PATHS_READ);
    if (file_is_folder(path))
        allow_links(p, path, 0, &left);
}

/* A value, and each part of a list in it, if it is a path. */
static void allow_value(struct paths *p, const char *value)
{
    char *copy = mem_text(value), *rest = copy;
    allow_input(p, value);
    for (char *part; (part = strsep(&rest, ",=:"));)
        if (*part && strcmp(part, value))
            allow_input(p, part);
    free(copy);
}

/* Allows to write a file, and to make it: to write in its folder. */
static void allow_output(struct paths *p, const char *path)
{
    char *folder = mem_text(path);
    size_t n = strlen(folder);
    while (n > 1 && folder[n - 1] == '/')
        folder[--n] = 0;
    paths_allow(p, path, PATHS_WRITE); /* a device, a pipe, or a file behind a link */
    if (strncmp(folder, "/dev/", 5) && strncmp(folder, "/proc/", 6)) {
        do { /* parents that are missing are made by the tool */
            char *slash = strrchr(folder, '/');
            snprintf(slash ? slash + (slash == folder) : folder, 2, "%s", slash ? "" : ".");
        } while (!file_exists(folder));
        paths_allow(p, folder, PATHS_WRITE);
    }
    free(folder);
}

/* 1: the tool may move layers to a store in the scratch folder. */
static int may_offload(const struct tool *t)
{
    return *text_of(t, "device-map") || *text_of(t, "kv-map") ||
           !strcmp(text_of(t, "on-oom"), "plan");
}

static void allow_options(struct paths *p, const struct tool *t)
{
    for (const struct opt *o = t->options; o->name; o++) {
        const char *value = o->type == OPT_TEXT ? *(const char **)o->to : NULL;
        if (o->writes == WRITES_SCRATCH && (!value || !*value) && may_offload(t))
            paths_allow(p, file_scratch_folder(), PATHS_WRITE);
        if (!value || !*value || !strcmp(value, "-"))
            continue;
        if (o->writes)
            allow_output(p, value);
        allow_value(p, value);
    }
}

/* Libraries, time zone, processor, data that is shipped; crossover's cache, made if the tool reads
 * models. */
static void allow_system(struct paths *p, unsigned programs, int models)
{
    static const char *const read[] = {
        "/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin", "/opt", "/nix/store", "/gnu/store",
        "/etc/ld.so.cache", "/etc/alternatives", "/etc/localtime", "/etc/os-release",
        "/etc/locale.alias", "/etc/fonts", "/etc/gnuplotrc", "/etc/ssl", "/etc/pki",
        "/etc/ca-certificates", "/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf",
        "/etc/host.conf", "/etc/gai.conf", "/etc/services", "/proc", "/sys", "/dev/zero",
        "/dev/urandom", "/dev/random"};
    static const char *const write[] = {"/dev/null", "/dev/full", "/proc/self"};
    for (size_t i = 0; i < sizeof read / sizeof *read; i++)
        paths_allow(p, read[i], PATHS_READ | programs);
    for (size_t i = 0; i < sizeof write / sizeof *write; i++)
        paths_allow(p, write[i], PATHS_WRITE);
    static const char *const shipped[] = {"data", "plots"};
    for (size_t i = 0; i < sizeof shipped / sizeof *shipped; i++) {
        char *folder = share_find(shipped[i], NULL);
        if (folder)
            paths_allow(p, folder, PATHS_READ);
        free(folder);
    }
    char *cache = file_cache_folder("");
    if (cache && (!models || !file_make_folder(cache, NULL)))
        paths_allow(p, cache, PATHS_WRITE);
    free(cache);
}

/* A folder of models, which people move to another disk and link at any of these places. */
static void allow_cache(struct paths *p, const char *folder)
{
    static const char *const below[] = {"", "/huggingface", "/hub", "/huggingface/hub"};
    for (size_t i = 0; *folder && i < sizeof below / sizeof *below; i++) {
        char *path = mem_format("%s%s", folder, below[i]);
        int left = LINKS_MOST;
        paths_allow(p, path, PATHS_READ);
        allow_links(p, path, LINKS_DEEP, &left); /* not below: the disk is allowed as a whole */
        free(path);
    }
}

/* Files and folders that variables name, and the user's cache, where models are. */
static void allow_environment(struct paths *p, unsigned programs)
{
    enum { CACHES = 3 }; /* of which the first name a cache of models */
    static const char *const variables[] = {"HF_", "HUGGINGFACE_", "XDG_CACHE_HOME=", "CROSSOVER_",
                                            "LD_", "FONTCONFIG_", "GNUPLOT_", "SSL_CERT_", "PATH="};
    const size_t n = sizeof variables / sizeof *variables;
    char *usual = mem_format("%s/.cache", getenv("HOME") ? getenv("HOME") : "");
    allow_cache(p, usual);
    for (char **v = environ; *v; v++) {
        size_t at = 0;
        const char *value = strchr(*v, '=');
        while (at < n && strncmp(*v, variables[at], strlen(variables[at])))
            at++;
        if (at == n || (at == n - 1 && !programs) || !value)
            continue;
        char *copy = mem_text(value + 1), *rest = copy;
        if (at < CACHES)
            allow_cache(p, value + 1);
        for (char *part; (part = strsep(&rest, ": "));)
            if (*part)
                paths_allow(p, part, PATHS_READ | programs);
        free(copy);
    }
    free(usual);
    const char *choices = getenv("CROSSOVER_GEMM_CHOICES"); /* of the GPU's library; may be new */
    if (choices && *choices)
        allow_output(p, choices);
}

static int restrict_files(const struct tool *t, char **operands)
{
    struct paths p;
    const unsigned programs = t->needs & NEEDS_PROGRAMS ? PATHS_RUN : 0;
    if (paths_begin(&p))
        return -1;
    allow_system(&p, programs, *text_of(t, "model") != 0);
    allow_environment(&p, programs);
    allow_options(&p, t);
    for (; *operands; operands++)
        allow_value(&p, *operands);
    if (p.error) { /* else a file of the command line would be refused later, without this reason */
        struct err e = {0};
        err_set(&e, p.error == ENOMEM ? EXIT_INTERNAL : EXIT_NO_INPUT,
                "cannot look up the files of the command line: %s", strerror(p.error));
        err_die(t->name, &e);
    }
    return paths_apply(&p);
}

/* ---- all of it ---- */

/* 1: the tool may open a GPU. */
static int may_use_gpu(const struct tool *t)
{
    const char *device = text_of(t, "device");
    return *device && strcmp(device, "cpu") && strcmp(device, "ref") &&
           (file_exists("/dev/nvidiactl") || file_exists("/dev/dxg") ||
            file_exists("/proc/driver/nvidia/version"));
}

void opt_contain(const struct tool *t, char **operands)
{
    const char *wanted = text_of(t, "sandbox");
    const struct log log = {t->name, 1};
    const int gpu = may_use_gpu(t);
    const struct rlimit none = {0, 0};
    if (!CAN || !*wanted || t->needs & NEEDS_ALL)
        return;
    if (gpu && !file_exists("/dev/dxg") && !file_exists("/dev/nvidia-uvm"))
        return; /* the driver makes its devices by a program with rights of its own */
    if (!strcmp(wanted, "off")) {
        log_note(&log, "--sandbox off: the tool keeps all rights of the user");
        return;
    }
    setrlimit(RLIMIT_CORE, &none); /* a core file is a write that nobody named */
    if (!gpu)
        (void)restrict_files(t, operands); /* opt_contain_print() says if it cannot be */
    (void)filter_apply(
        gpu                         ? FILTER_INTERNET
        : t->needs & NEEDS_NETWORK  ? FILTER_CUTS | FILTER_PROCESSES | FILTER_PROGRAMS
        : t->needs & NEEDS_PROGRAMS ? FILTER_CUTS | FILTER_SOCKETS
                                    : FILTER_CUTS | FILTER_PROCESSES | FILTER_PROGRAMS |
                                          FILTER_SOCKETS);
}

void opt_contain_print(void)
{
    struct paths p;
    struct sock_filter code[FILTER_LENGTH];
    int files = CAN && !paths_begin(&p);
    if (files) {
        printf("sandbox: files (Landlock %d)", p.abi);
        close(p.fd);
    } else {
        printf("sandbox: no limit of files%s", CAN ? "" : " (build with a sanitizer)");
    }
    puts(CAN && filter_write(code, 0) ? ", system calls" : ", no limit of system calls");
}
