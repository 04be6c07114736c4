// SPDX-License-Identifier: GPL-2.0-or-later
#include "source/bpf_log.h"
#include "base/cleanup.h"

#include <bpf/libbpf.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static _Thread_local struct fr_bpf_log *current;

/* Appends TEXT to the log. If the log is full, drops its oldest text. */
static void append(struct fr_bpf_log *log, const char *text, size_t len)
{
	size_t excess;

	if (!log->text)
		log->text = malloc(FR_BPF_LOG_SIZE + 1);
	if (!log->text)
		return;
	if (len > FR_BPF_LOG_SIZE) {
		text += len - FR_BPF_LOG_SIZE;
		len = FR_BPF_LOG_SIZE;
	}
	excess = log->len + len > FR_BPF_LOG_SIZE ? log->len + len - FR_BPF_LOG_SIZE : 0;
	memmove(log->text, log->text + excess, log->len - excess);
	memcpy(log->text + log->len - excess, text, len);
	log->len += len - excess;
	log->text[log->len] = '\0';
}

__attribute__((format(printf, 2, 0))) static int print(
	enum libbpf_print_level level, const char *fmt, va_list ap)
{
	char *text;
	int n;

	if (!current || level == LIBBPF_DEBUG)
		return 0;
	n = vasprintf(&text, fmt, ap);
	if (n < 0)
		return 0;
	append(current, text, (size_t)n);
	free(text);
	return n;
}

static void set_print(void)
{
	libbpf_set_print(print);
}

void fr_bpf_log_begin(struct fr_bpf_log *log)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, set_print);
	log->outer = current;
	current = log;
}

void fr_bpf_log_end(struct fr_bpf_log *log)
{
	current = log->outer;
	free(log->text);
}

/* Returns whether the LEN bytes of TEXT begin with PREFIX. */
static bool has_prefix(const char *text, size_t len, const char *prefix)
{
	return len >= strlen(prefix) && memcmp(text, prefix, strlen(prefix)) == 0;
}

/* Copies a line into RET, without the prefix "libbpf: " and without blanks at both ends. Truncates a long
   line. */
static void copy_line(char *ret, size_t size, const char *line, size_t len)
{
	const char *end = line + len;

	if (has_prefix(line, len, "libbpf: "))
		line += strlen("libbpf: ");
	while (line < end && strchr(" \t", *line))
		line++;
	while (line < end && strchr(" \t\r", end[-1]))
		end--;
	snprintf(ret, size, "%.*s", (int)(end - line), line);
}

/* Returns whether the line is "libbpf: prog 'NAME': -- BEGIN PROG LOAD LOG --". If so, RET gets NAME. */
static bool parse_log_begin(const char *line, size_t len, char *ret, size_t size)
{
	static const char prefix[] = "libbpf: prog '";
	const char *name = line + strlen(prefix), *quote;

	if (!has_prefix(line, len, prefix) || !memmem(line, len, "-- BEGIN PROG LOAD LOG --", 25))
		return false;
	quote = memchr(name, '\'', len - strlen(prefix));
	if (quote)
		copy_line(ret, size, name, (size_t)(quote - name));
	return quote;
}

/* Returns whether the line has statistics, which the verifier prints after the reason of the failure. */
static bool is_statistics(const char *line, size_t len)
{
	static const char *const prefixes[] = {
		"processed ", "verification time ", "stack depth ", "max_states"};

	for (size_t i = 0; i < FR_ARRAY_SIZE(prefixes); i++)
		if (has_prefix(line, len, prefixes[i]))
			return true;
	return false;
}

/* LINE is a line with source code in the verifier's log: "; int x = *p; @ file.c:12". Copies LINE into
   RET->source, without the first semicolon. Does nothing if there is no code before the '@'. */
static void copy_source(struct fr_bpf_log_summary *ret, const char *line, size_t len)
{
	char text[sizeof(ret->source)];

	copy_line(text, sizeof(text), line + 1, len - 1);
	if (text[0] && text[0] != '@')
		memcpy(ret->source, text, sizeof(text));
}

void fr_bpf_log_summarize(const char *text, struct fr_bpf_log_summary *ret)
{
	enum { OUTSIDE, IN_LOG, AFTER_LOG } state = OUTSIDE;

	*ret = (struct fr_bpf_log_summary){0};
	for (const char *line = text; line && *line;) {
		size_t len = strcspn(line, "\n");
		char program[sizeof(ret->program)];

		if (parse_log_begin(line, len, program, sizeof(program))) {
			*ret = (struct fr_bpf_log_summary){0};
			memcpy(ret->program, program, sizeof(program));
			state = IN_LOG;
		} else if (memmem(line, len, "-- END PROG LOAD LOG --", 23)) {
			state = state == IN_LOG ? AFTER_LOG : state;
		} else if (state == IN_LOG && *line == ';') {
			copy_source(ret, line, len);
		} else if (len && state != AFTER_LOG && !is_statistics(line, len)) {
			copy_line(ret->reason, sizeof(ret->reason), line, len);
		}
		line += len + (line[len] == '\n');
	}
}
