/* opt-contain.c - see opt_contain() in opt.h. The limits are set by Landlock and seccomp, where
 * Linux has them. A tool may read each path that is an operand or the value of an option, so a new
 * option needs no entry here. A tool may write a path only if the row of the option has
 * `writes`. */
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

/* Returns the value of an option that takes a text; "": the tool has no such option, or the option
 * has no value. */
static const char *text_of(const struct tool *tool, const char *name)
{
    for (const struct opt *option = tool->options; option->name; option++)
        if (!strcmp(option->name, name) && option->type != OPT_HEADING &&
            *(const char **)option->to)
            return *(const char **)option->to;
    return "";
}

/* ---- files ---- */

/* Allows to read the targets of the links in a folder and in the folders below it, LINKS_DEEP
 * levels deep. depth: levels above `folder`; *left: entries that may still be looked at. */
static void allow_links(struct paths *paths, const char *folder, int depth, int *left)
{
    DIR *open = opendir(folder);
    for (struct dirent *entry; open && (entry = readdir(open)) && --*left > 0;) {
        struct stat info;
        char *path = mem_format("%s/%s", folder, entry->d_name);
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..") || lstat(path, &info))
            ;
        else if (S_ISLNK(info.st_mode))
            paths_allow(paths, path, PATHS_READ);
        else if (S_ISDIR(info.st_mode) && depth < LINKS_DEEP)
            allow_links(paths, path, depth + 1, left);
        free(path);
    }
    if (open)
        closedir(open);
}

/* Allows to read a path. For a folder it also allows the targets of its links, because a cache of
 * models consists of links. */
static void allow_input(struct paths *paths, const char *path)
{
    int left = LINKS_MOST;
    paths_allow(paths, path, PATHS_READ);
    if (file_is_folder(path))
        allow_links(paths, path, 0, &left);
}

/* Allows to read the path that a value is, and each path in a value that is a list. */
static void allow_value(struct paths *paths, const char *value)
{
    char *copy = mem_text(value), *rest = copy;
    allow_input(paths, value);
    for (char *part; (part = strsep(&rest, ",=:"));)
        if (*part && strcmp(part, value))
            allow_input(paths, part);
    free(copy);
}

/* Allows to write a file and to create it, which needs the right to write in its folder. */
static void allow_output(struct paths *paths, const char *path)
{
    char *folder = mem_text(path);
    size_t n = strlen(folder);
    while (n > 1 && folder[n - 1] == '/')
        folder[--n] = 0;
    paths_allow(paths, path, PATHS_WRITE); /* a device, a pipe, or a file behind a link */
    if (strncmp(folder, "/dev/", 5) && strncmp(folder, "/proc/", 6)) {
        do { /* the tool creates missing parents, so it needs the right in one that exists */
            char *slash = strrchr(folder, '/');
            snprintf(slash ? slash + (slash == folder) : folder, 2, "%s", slash ? "" : ".");
        } while (!file_exists(folder));
        paths_allow(paths, folder, PATHS_WRITE);
    }
    free(folder);
}

/* 1: the tool may move layers to a store in the scratch folder. */
static int may_offload(const struct tool *tool)
{
    return *text_of(tool, "device-map") || *text_of(tool, "kv-map") ||
           !strcmp(text_of(tool, "on-oom"), "plan");
}

static void allow_options(struct paths *paths, const struct tool *tool)
{
    for (const struct opt *option = tool->options; option->name; option++) {
        const char *value = option->type == OPT_TEXT ? *(const char **)option->to : NULL;
        if (option->writes == WRITES_SCRATCH && (!value || !*value) && may_offload(tool))
            paths_allow(paths, file_scratch_folder(), PATHS_WRITE);
        if (!value || !*value || !strcmp(value, "-"))
            continue;
        if (option->writes)
            allow_output(paths, value);
        allow_value(paths, value);
    }
}

/* Allows the files that every tool may need: libraries, time zone, processor, shipped data, and
 * crossover's cache, which is created if the tool reads models. */
static void allow_system(struct paths *paths, unsigned programs, int models)
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
        paths_allow(paths, read[i], PATHS_READ | programs);
    for (size_t i = 0; i < sizeof write / sizeof *write; i++)
        paths_allow(paths, write[i], PATHS_WRITE);
    static const char *const shipped[] = {"data", "plots"};
    for (size_t i = 0; i < sizeof shipped / sizeof *shipped; i++) {
        char *folder = share_find(shipped[i], NULL);
        if (folder)
            paths_allow(paths, folder, PATHS_READ);
        free(folder);
    }
    char *cache = file_cache_folder("");
    if (cache && (!models || !file_make_folder(cache, NULL)))
        paths_allow(paths, cache, PATHS_WRITE);
    free(cache);
}

/* Allows a cache of models. People move such a folder to another disk and put a link at one of the
 * places below[], so the targets of links there are allowed too. */
static void allow_cache(struct paths *paths, const char *folder)
{
    static const char *const below[] = {"", "/huggingface", "/hub", "/huggingface/hub"};
    for (size_t i = 0; *folder && i < sizeof below / sizeof *below; i++) {
        char *path = mem_format("%s%s", folder, below[i]);
        int left = LINKS_MOST;
        paths_allow(paths, path, PATHS_READ);
        allow_links(paths, path, LINKS_DEEP, &left); /* a target is allowed with all below it */
        free(path);
    }
}

/* Allows the files and folders that variables of the environment name, and the user's cache, which
 * holds models. */
static void allow_environment(struct paths *paths, unsigned programs)
{
    enum { CACHES = 3 }; /* the first CACHES variables name a cache of models */
    static const char *const variables[] = {"HF_", "HUGGINGFACE_", "XDG_CACHE_HOME=", "CROSSOVER_",
                                            "LD_", "FONTCONFIG_", "GNUPLOT_", "SSL_CERT_", "PATH="};
    const size_t n = sizeof variables / sizeof *variables;
    char *usual = mem_format("%s/.cache", getenv("HOME") ? getenv("HOME") : "");
    allow_cache(paths, usual);
    for (char **pair = environ; *pair; pair++) {
        size_t at = 0;
        const char *value = strchr(*pair, '=');
        while (at < n && strncmp(*pair, variables[at], strlen(variables[at])))
            at++;
        if (at == n || (at == n - 1 && !programs) || !value)
            continue;
        char *copy = mem_text(value + 1), *rest = copy;
        if (at < CACHES)
            allow_cache(paths, value + 1);
        for (char *part; (part = strsep(&rest, ": "));)
            if (*part)
                paths_allow(paths, part, PATHS_READ | programs);
        free(copy);
    }
    free(usual);
}

static int restrict_files(const struct tool *tool, char **operands)
{
    struct paths paths;
    const unsigned programs = tool->needs & NEEDS_PROGRAMS ? PATHS_RUN : 0;
    if (paths_begin(&paths))
        return -1;
    allow_system(&paths, programs, *text_of(tool, "model") != 0);
    allow_environment(&paths, programs);
    allow_options(&paths, tool);
    for (; *operands; operands++)
        allow_value(&paths, *operands);
    if (paths.error) { /* without this check the file would be refused later, without the reason */
        struct err e = {0};
        err_set(&e, paths.error == ENOMEM ? EXIT_INTERNAL : EXIT_NO_INPUT,
                "cannot look up the files of the command line: %s", strerror(paths.error));
        err_die(tool->name, &e);
    }
    return paths_apply(&paths);
}

/* ---- the limits of a tool ---- */

/* 1: the tool may open a GPU. */
static int may_use_gpu(const struct tool *tool)
{
    const char *device = text_of(tool, "device");
    return *device && strcmp(device, "cpu") && strcmp(device, "ref") &&
           (file_exists("/dev/nvidiactl") || file_exists("/dev/dxg") ||
            file_exists("/proc/driver/nvidia/version"));
}

void opt_contain(const struct tool *tool, char **operands)
{
    const char *wanted = text_of(tool, "sandbox");
    const struct log log = {tool->name, 1};
    const int gpu = may_use_gpu(tool);
    const struct rlimit none = {0, 0};
    if (!CAN || !*wanted || tool->needs & NEEDS_ALL)
        return;
    if (gpu && !file_exists("/dev/dxg") && !file_exists("/dev/nvidia-uvm"))
        return; /* the driver creates its devices by a setuid program, which limits would break */
    if (!strcmp(wanted, "off")) {
        log_note(&log, "--sandbox off: the tool keeps all rights of the user");
        return;
    }
    setrlimit(RLIMIT_CORE, &none); /* a core file is a write that nobody named */
    if (!gpu)
        (void)restrict_files(tool, operands); /* opt_contain_print() says if it fails */
    (void)filter_apply(
        gpu                            ? FILTER_INTERNET
        : tool->needs & NEEDS_NETWORK  ? FILTER_CUTS | FILTER_PROCESSES | FILTER_PROGRAMS
        : tool->needs & NEEDS_PROGRAMS ? FILTER_CUTS | FILTER_SOCKETS
                                       : FILTER_CUTS | FILTER_PROCESSES | FILTER_PROGRAMS |
                                          FILTER_SOCKETS);
}

void opt_contain_print(void)
{
    struct paths paths;
    struct sock_filter code[FILTER_LENGTH];
    int files = CAN && !paths_begin(&paths);
    if (files) {
        printf("sandbox: files (Landlock %d)", paths.abi);
        close(paths.fd);
    } else {
        printf("sandbox: no limit of files%s", CAN ? "" : " (build with a sanitizer)");
    }
    puts(CAN && filter_write(code, 0) ? ", system calls" : ", no limit of system calls");
}
