// SPDX-License-Identifier: GPL-2.0-or-later
#include "source/bpf_log.h"
#include "base/cleanup.h"

#include <bpf/libbpf.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

static _Thread_local struct fr_bpf_log *current;

/* Add TEXT, and let go of the oldest that does not fit. */
static void append(struct fr_bpf_log *log, const char *text, size_t len)
{
	size_t over;

	if (!log->text)
		log->text = malloc(FR_BPF_LOG_SIZE + 1);
	if (!log->text)
		return;
	if (len > FR_BPF_LOG_SIZE) {
		text += len - FR_BPF_LOG_SIZE;
		len = FR_BPF_LOG_SIZE;
	}
	over = log->len + len > FR_BPF_LOG_SIZE ? log->len + len - FR_BPF_LOG_SIZE : 0;
	memmove(log->text, log->text + over, log->len - over);
	memcpy(log->text + log->len - over, text, len);
	log->len += len - over;
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
}

void fr_bpf_log_deinit(struct fr_bpf_log *log)
{
	free(log->text);
	*log = (struct fr_bpf_log){0};
}

static bool begins(const char *line, size_t len, const char *with)
{
	return len >= strlen(with) && memcmp(line, with, strlen(with)) == 0;
}

/* LINE without what libbpf puts before and blanks around, into RET, as far as it fits. */
static void copy_line(char *ret, size_t size, const char *line, size_t len)
{
	if (begins(line, len, "libbpf: ")) {
		line += 8;
		len -= 8;
	}
	while (len && (*line == ' ' || *line == '\t')) {
		line++;
		len--;
	}
	while (len && strchr(" \t\r", line[len - 1]))
		len--;
	len = FR_MIN(len, size - 1);
	memcpy(ret, line, len);
	ret[len] = '\0';
}

/* "libbpf: prog 'NAME': -- BEGIN PROG LOAD LOG --": the NAME into RET. */
static bool log_begins(const char *line, size_t len, char *ret, size_t size)
{
	const char *name, *end;

	if (!begins(line, len, "libbpf: prog '") || !memmem(line, len, "-- BEGIN PROG LOAD LOG --", 25))
		return false;
	name = line + 14;
	end = memchr(name, '\'', len - 14);
	if (!end)
		return false;
	copy_line(ret, size, name, (size_t)(end - name));
	return true;
}

/* What the verifier and libbpf add behind the verdict. */
static bool is_statistics(const char *line, size_t len)
{
	static const char *const words[] = {"processed ", "verification time ", "stack depth ", "max_states"};

	for (size_t i = 0; i < FR_ARRAY_SIZE(words); i++)
		if (begins(line, len, words[i]))
			return true;
	return false;
}

/* "; int x = *p; @ file.c:12" into SOURCE, without the semicolon. */
static void take_source(struct fr_bpf_log_summary *v, const char *line, size_t len)
{
	char text[sizeof(v->source)];

	copy_line(text, sizeof(text), line + 1, len - 1);
	if (text[0] && text[0] != '@')
		memcpy(v->source, text, sizeof(text));
}

void fr_bpf_log_summarize(const char *text, struct fr_bpf_log_summary *ret)
{
	bool verifier = false, over = false;

	*ret = (struct fr_bpf_log_summary){0};
	for (const char *line = text; line && *line;) {
		size_t len = strcspn(line, "\n");
		char program[sizeof(ret->program)];

		if (log_begins(line, len, program, sizeof(program))) {
			*ret = (struct fr_bpf_log_summary){0};
			memcpy(ret->program, program, sizeof(program));
			verifier = true;
			over = false;
		} else if (memmem(line, len, "-- END PROG LOAD LOG --", 23)) {
			over = true;
		} else if (verifier && !over && *line == ';') {
			take_source(ret, line, len);
		} else if (len && !(verifier && over) && !is_statistics(line, len)) {
			copy_line(ret->reason, sizeof(ret->reason), line, len);
		}
		line += len + (line[len] == '\n');
	}
}
