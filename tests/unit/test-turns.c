/* test-turns.c - tests that processes work one at a time in the order of their parties, and that no
 * process waits for a party that has left or whose process is gone. */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/run/turns.h"
#include "tests/tap.h"

enum { TURNS = 40, TEXT = 256 };
enum how { WHOLE, LEAVES, DIES, LINGERS };

static char path[] = "/tmp/test-turns-XXXXXX";

/* A party: writes its letter in each turn. LINGERS: also writes a '.' 1 ms later. Ends with the
 * code of an error, or 0. */
static int work(size_t party, size_t parties, int to, size_t last, enum how how)
{
    struct err e = {0};
    struct turns *t = turns_join(path, party, parties, &e);
    const char letter = (char)('a' + party);
    int rc = t ? 0 : -1;
    for (size_t i = 0; !rc && i < TURNS && !(how == LEAVES && i == last); i++) {
        rc = turns_wait(t, NULL, &e);
        if (how == DIES && i == last)
            _exit(99);
        if (!rc && write(to, &letter, 1) != 1)
            rc = -1;
        turns_pass(t);
        if (how == LINGERS && (usleep(1000) || write(to, ".", 1) != 1))
            rc = -1;
    }
    turns_leave(t);
    return rc ? err_code(&e) : 0;
}

/* Runs the parties. In turn `last` the last party ends by `how`. code[]: exit codes of all
 * parties. */
static size_t run(size_t parties, size_t last, enum how how, int *code, char text[TEXT])
{
    int ends[2], status;
    pid_t pid[TURNS_PARTIES];
    size_t n = 0;
    ssize_t got;
    unlink(path);
    if (pipe(ends))
        return 0;
    for (size_t i = 0; i < parties; i++) {
        pid[i] = fork();
        if (!pid[i])
            _exit(work(i, parties, ends[1], last, i + 1 == parties ? how : WHOLE));
    }
    close(ends[1]);
    if (how == DIES) { /* waits, because a zombie is still a process */
        waitpid(pid[parties - 1], &status, 0);
        code[parties - 1] = WEXITSTATUS(status);
    }
    while (n < TEXT && (got = read(ends[0], text + n, TEXT - n)) > 0)
        n += (size_t)got;
    for (size_t i = 0; i + (how == DIES) < parties; i++) {
        waitpid(pid[i], &status, 0);
        code[i] = WEXITSTATUS(status);
    }
    close(ends[0]);
    return n;
}

/* Writes '-', each party later than the parties before it, meets the others and writes '+'. Party 2
 * leaves instead of meeting. */
static int meet(size_t party, int to)
{
    struct err e = {0};
    struct turns *t = turns_join(path, party, 3, &e);
    int rc = t ? 0 : -1;
    usleep(30000 * (unsigned)party);
    if (!rc && write(to, "-", 1) != 1)
        rc = -1;
    if (!rc && party < 2)
        rc = turns_meet(t, NULL, &e) || write(to, "+", 1) != 1;
    turns_leave(t);
    return rc ? 1 : 0;
}

/* Runs the three parties of meet(). Returns what they wrote, a text of `room` bytes. */
static const char *meet_all(char *text, size_t room)
{
    int ends[2];
    size_t n = 0;
    ssize_t got;
    unlink(path);
    if (pipe(ends))
        return "";
    for (size_t i = 0; i < 3; i++)
        if (!fork())
            _exit(meet(i, ends[1]));
    close(ends[1]);
    while (n + 1 < room && (got = read(ends[0], text + n, room - 1 - n)) > 0)
        n += (size_t)got;
    text[n] = 0;
    close(ends[0]);
    for (size_t i = 0; i < 3; i++)
        wait(NULL);
    return text;
}

/* Returns 1 if the letters text[from..to-1] follow each other in the order of the parties. */
static int in_order(const char *text, size_t from, size_t to, size_t parties)
{
    for (size_t i = from; i < to; i++)
        if (text[i] != (char)('a' + i % parties))
            return 0;
    return 1;
}

/* The number of times that `what` occurs in text[n]. */
static int count_of(const char *what, const char *text, size_t n)
{
    int count = 0;
    for (size_t i = 0; i + strlen(what) <= n; i++)
        count += !memcmp(text + i, what, strlen(what));
    return count;
}

int main(void)
{
    char text[TEXT];
    int code[TURNS_PARTIES] = {0};
    struct err e = {0};
    int fd = mkstemp(path);
    if (fd >= 0)
        close(fd);
    size_t n = run(3, 0, WHOLE, code, text);
    ok(n == 3 * TURNS && in_order(text, 0, n, 3), "three parties work in their order");
    ok(!code[0] && !code[1] && !code[2], "all parties exit with 0");
    n = run(2, 5, LEAVES, code, text);
    ok(n == TURNS + 5 && in_order(text, 0, 10, 2) && text[n - 1] == 'a' && !code[0],
       "a party that has left is passed over");
    n = run(2, 0, LINGERS, code, text);
    ok(count_of("b.a", text, n) > TURNS / 2, /* it is all turns if the machine never stalls */
       "a turn begins when the party that passed it sleeps (%d of %d)", count_of("b.a", text, n),
       TURNS - 1);
    n = run(2, 5, DIES, code, text);
    ok(code[1] == 99 && code[0] == EXIT_NO_DEVICE && n == 11,
       "a party that died ends the other, with an error");
    ok(!turns_join(path, 0, 2, &e) && err_code(&e) == EXIT_BAD_DATA,
       "the file of another launch is refused");
    e = (struct err){0};
    ok(!turns_join("/nowhere/turns", 0, 2, &e) && err_code(&e) == EXIT_CANNOT_CREATE,
       "a file that cannot be made is an error");
    ok(!strcmp(meet_all(text, sizeof text), "---++"),
       "parties meet when the last one has come or left");
    unlink(path);
    return tap_done();
}
