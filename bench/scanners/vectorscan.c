/*
 * Vectorscan in streaming mode: vectorscan SET INPUT SECONDS
 *
 * Searches for the strings of SET/set.txt in INPUT, a file that is one stream or a folder whose files are streams of
 * their own, in segments of 8 kB, and prints a line of JSON as the other scanners do.
 */
#include <dirent.h>
#include <hs/hs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define SEGMENT 8192
#define PIECE (1 << 20)

static unsigned long long found, scanned;
static double begin, limit;

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec + now.tv_nsec / 1e9;
}

static void fail(const char *what)
{
    fprintf(stderr, "vectorscan: %s\n", what);
    exit(1);
}

static int hit(unsigned id, unsigned long long from, unsigned long long to, unsigned flags, void *context)
{
    found++;
    return 0;
}

static char *read_whole(const char *path, size_t *length)
{
    struct stat about;
    FILE *file = fopen(path, "rb");
    if (!file || fstat(fileno(file), &about))
        fail(path);
    char *bytes = malloc(about.st_size + 1);
    if (!bytes || fread(bytes, 1, about.st_size, file) != (size_t)about.st_size)
        fail(path);
    fclose(file);
    *length = about.st_size;
    bytes[*length] = 0;
    return bytes;
}

static int digit(char letter)
{
    return letter <= '9' ? letter - '0' : letter - 'a' + 10;
}

static hs_database_t *compile(const char *set)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/set.txt", set);
    size_t length, count = 0;
    char *digits = read_whole(path, &length);
    for (size_t at = 0; at < length; at++)
        count += digits[at] == '\n';
    char *bytes = malloc(length);
    const char **strings = malloc(count * sizeof *strings);
    size_t *lengths = malloc(count * sizeof *lengths);
    unsigned *ids = malloc(count * sizeof *ids);
    unsigned *flags = calloc(count, sizeof *flags);
    if (!bytes || !strings || !lengths || !ids || !flags)
        fail("no memory");
    char *to = bytes, *line = digits;
    for (size_t number = 0; number < count; number++) {
        strings[number] = to;
        ids[number] = number;
        /* It takes a string that begins with NUL for an empty one. */
        while (line[0] == '0' && line[1] == '0')
            line += 2;
        for (; *line != '\n'; line += 2)
            *to++ = digit(line[0]) << 4 | digit(line[1]);
        lengths[number] = to - strings[number];
        line++;
    }
    hs_database_t *database;
    hs_compile_error_t *error;
    if (hs_compile_lit_multi(strings, flags, ids, lengths, count, HS_MODE_STREAM, NULL, &database, &error))
        fail(error->message);
    return database;
}

/* Scans one stream; whether there is time for more. */
static int scan(const hs_database_t *database, hs_scratch_t *scratch, const char *bytes, size_t length)
{
    hs_stream_t *stream;
    if (hs_open_stream(database, 0, &stream))
        fail("no stream");
    int goes_on = 1;
    for (size_t at = 0; at < length && goes_on; at += SEGMENT) {
        size_t segment = length - at < SEGMENT ? length - at : SEGMENT;
        if (hs_scan_stream(stream, bytes + at, segment, 0, scratch, hit, NULL))
            fail("a scan failed");
        scanned += segment;
        if (at % PIECE == 0)
            goes_on = seconds() - begin < limit;
    }
    hs_close_stream(stream, scratch, hit, NULL);
    return goes_on;
}

int main(int count, char **arguments)
{
    if (count != 4)
        fail("SET INPUT SECONDS");
    double loading = seconds();
    hs_database_t *database = compile(arguments[1]);
    double load = seconds() - loading;
    hs_scratch_t *scratch = NULL;
    if (hs_alloc_scratch(database, &scratch))
        fail("no scratch space");
    size_t size = 0, length;
    hs_database_size(database, &size);
    limit = atof(arguments[3]);
    double took = 0;
    struct dirent **names;
    int files = scandir(arguments[2], &names, NULL, alphasort);
    for (int number = 0; number < (files < 0 ? 1 : files); number++) {
        char path[4096];
        if (files < 0)
            snprintf(path, sizeof path, "%s", arguments[2]);
        else if (names[number]->d_name[0] == '.')
            continue;
        else
            snprintf(path, sizeof path, "%s/%s", arguments[2], names[number]->d_name);
        char *bytes = read_whole(path, &length);
        begin = seconds() - took;
        int goes_on = scan(database, scratch, bytes, length);
        took = seconds() - begin;
        free(bytes);
        if (!goes_on)
            break;
    }
    printf("{\"load\": %.3f, \"bytes\": %llu, \"seconds\": %.4f, \"found\": %llu, \"own_kb\": %zu}\n", load, scanned, took,
           found, size / 1024);
    return 0;
}
