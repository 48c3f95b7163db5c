/* One line per event on standard error, "quipu: " first, for what a person running the server must know. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

void log_line(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
