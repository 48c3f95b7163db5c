/* The patterns' commands: what is said of each pattern, and examples. What they do comes from the patterns'
 * rows (operation.c); the few that are more than one call are in files of their own. */
#include "cli/operation.h"
#include "cli/special.h"

#define WHERE_IT_RUNS                                                                                        \
    "\n\nThe tables are ordinary ones (quipu-...), made on first use. The command does the work itself, "    \
    "over DynamoDB's API\non whatever --on names; deadlines, periods and reactions (then) are carried out "  \
    "by a 'quipu serve' on the\nsame tables."

#define HOW_IT_ANSWERS                                                                                       \
    "\n\nPrints what matters of the reply, readable on a terminal and JSON lines otherwise; --json: all of " \
    "it. Exit status:\n0 done, 1 refused (with a sentence that says why), 2 the arguments make no sense, 3 " \
    "not now (another holds it,\nnothing is there, the wait is over), 4 somebody else has changed it since."

// clang-format off
#define PATTERN(word, what, text, lines)                                                                     \
    const struct command command_##word = {.name = #word,                                                    \
                                           .summary = what,                                                  \
                                           .usage = "COMMAND ...",                                           \
                                           .about = text WHERE_IT_RUNS HOW_IT_ANSWERS,                       \
                                           .examples = lines,                                                \
                                           .grow = operation_commands}

PATTERN(counter, "hand out numbers, none of them twice",
        "Counters give numbers: unique, ever larger, one by one or in blocks.",
        "  quipu counter add orders                        # 1, then 2, ...\n"
        "  quipu counter add orders --block 10 --json      # {\"first\":3,\"last\":12}\n"
        "  quipu counter add stock -1 --min 0 --start 5    # 4; refused below 0\n"
        "  quipu counter add orders --idempotency-key c-7  # the same number when it is repeated\n"
        "  quipu counter get orders\n"
        "  quipu counter set orders 100\n"
        "  quipu counter list --begins or\n"
        "  quipu counter rm orders");

PATTERN(job, "count tasks and run the last step once",
        "A job counts its tasks, each once however often it is reported. Exactly one caller is told that it was\n"
        "the last, and what --then names runs once.",
        "  quipu job put pages --total 500 --then consolidate --deadline 1h\n"
        "  quipu job put letters --tasks a,b,c\n"
        "  quipu job start pages --each process-page --items pages.jsonl --concurrency 20 --then consolidate\n"
        "  quipu job change pages --concurrency 5          # or --paused true, while it runs\n"
        "  quipu job tasks pages                           # what is to be done, with items\n"
        "  quipu job items pages @pages.jsonl --end         # items of a job that was opened without a total\n"
        "  quipu job read pages                            # the next items of its --from table\n"
        "  quipu job done pages 17\n"
        "  quipu job done pages 18 19 20\n"
        "  quipu job failed pages 21 'no ink'\n"
        "  quipu job get pages --wait 30s && echo done     # status 3 while it is open\n"
        "  quipu job watch pages\n"
        "  quipu job missing pages\n"
        "  quipu job failures pages\n"
        "  quipu job results pages\n"
        "  quipu job redrive pages\n"
        "  quipu job change pages --total 600\n"
        "  quipu job ls --limit 10\n"
        "  quipu job ls --state complete                   # the newest first\n"
        "  quipu job rm pages");

PATTERN(group, "collect events until they are complete, then act on them once",
        "Groups collect events under a key until a rule says that they are complete: by number, by kinds, by\n"
        "a condition, by quiet or by a deadline.",
        "  quipu group put clicks --complete '{\"size\":10}' --quiet 5m --then digest\n"
        "  quipu group add clicks session-7 '{\"page\":\"/\"}' --id e1\n"
        "  quipu group add clicks < events.jsonl           # {\"key\":\"session-7\",\"id\":\"e2\"} on each line\n"
        "  quipu group get clicks session-7\n"
        "  quipu group get clicks session-7 --wait 30s\n"
        "  quipu group show clicks                         # the rules\n"
        "  quipu group show clicks --state open --older 1h # the open groups\n"
        "  quipu group show clicks --state complete        # the newest first\n"
        "  quipu group list\n"
        "  quipu group complete clicks session-7           # now, whatever the rules say\n"
        "  quipu group rm clicks session-7\n"
        "  quipu group forget clicks");

PATTERN(period, "collect events by the hour or day and hand them over once",
        "Periods collect events in buckets, which are handed over once when their time is over.",
        "  quipu period put digest --every 1h --then mail\n"
        "  quipu period put digest --cron '0 9 * * 1-5' --zone Europe/Berlin\n"
        "  quipu period add digest '{\"text\":\"hello\"}'\n"
        "  quipu period add digest < events.jsonl          # {\"id\":\"e1\",\"data\":1} on each line\n"
        "  quipu period show digest\n"
        "  quipu period get digest now\n"
        "  quipu period get digest last --wait 60s\n"
        "  quipu period close digest\n"
        "  quipu period buckets digest --state open\n"
        "  quipu period ls\n"
        "  quipu period rm digest");

PATTERN(work, "queues of work: claims, heartbeats, retries, dead letters",
        "A queue holds units of work. Whoever claims one has it for some time, keeps it by beats, saves its\n"
        "progress and finishes it; what nobody finishes is claimed again, and after many tries it is dead.",
        "  quipu work put mails --lease 1m --attempts 3 --backoff 10s\n"
        "  quipu work submit mails m-1 '{\"to\":\"ann\"}'\n"
        "  quipu work submit mails m-2 @mail.json --delay 1h\n"
        "  quipu work submit mails < units.jsonl           # {\"id\":\"m-3\",\"data\":1} on each line\n"
        "  quipu work run mails -- ./send-mail             # claims, runs, finishes, again and again\n"
        "  quipu work claim mails --wait 30s\n"
        "  quipu work beat mails m-1 1 '{\"page\":3}'\n"
        "  quipu work finish mails m-1 1 '{\"sent\":true}'\n"
        "  quipu work fail mails m-1 1 'no such address' --retry=false\n"
        "  quipu work get mails m-1 --wait 1m\n"
        "  quipu work ls mails --state dead\n"
        "  quipu work list                                 # the queues\n"
        "  quipu work retry mails m-1\n"
        "  quipu work rm mails m-1");

PATTERN(doc, "JSON documents with versions, which nobody overwrites unseen",
        "Documents have a version, so that nobody overwrites what they have not seen.",
        "  quipu doc put users ann '{\"name\":\"Ann\"}'        # 1, its version\n"
        "  quipu doc put users ann @ann.json --if-match 1\n"
        "  quipu doc put users bob --if-none-match '*' < bob.json\n"
        "  quipu doc patch users ann '{\"town\":\"Graz\"}'\n"
        "  quipu doc get users ann\n"
        "  quipu doc edit users ann                        # in $EDITOR\n"
        "  quipu doc ls users\n"
        "  quipu doc list                                  # the collections\n"
        "  quipu doc rm users ann --if-match 3");

PATTERN(lease, "locks that end by themselves: one process at a time",
        "A lease is a lock for some time. Its fence grows with each grant: hand it to what you write to, and\n"
        "let that refuse smaller ones.",
        "  quipu lease run nightly -- ./report             # holds it while the command runs\n"
        "  quipu lease run nightly --wait 0s --for 5m -- ./report\n"
        "  quipu lease run renders --holders 5 -- ./render # five at a time\n"
        "  quipu lease take nightly me --for 1m --wait 10s\n"
        "  quipu lease renew nightly me 7 --for 1m\n"
        "  quipu lease release nightly me 7\n"
        "  quipu lease get nightly\n"
        "  quipu lease list");

PATTERN(once, "do a thing once for a key; all others get its result",
        "The first caller of a key does the thing, under a fence; all others get its result, or wait for it.\n"
        "When it fails, or its caller dies, the next one tries.",
        "  quipu once run charge o-17 -- ./charge o-17     # the second time it only prints the result\n"
        "  quipu once run report 2026-11-15 --keep 30d -- ./report\n"
        "  quipu once begin charge o-17 --for 1m --wait 10s\n"
        "  quipu once renew charge o-17 1 --for 1m\n"
        "  quipu once finish charge o-17 1 '{\"paid\":12}'\n"
        "  quipu once fail charge o-17 1 'card declined'\n"
        "  quipu once get charge o-17\n"
        "  quipu once list charge                          # the keys that failed\n"
        "  quipu once rm charge o-17");

PATTERN(limit, "so many in a time, over all processes that ask",
        "A limit gives so many in a time, over all processes that ask, after a rest a burst of them at once.",
        "  quipu limit take mails --rate 100 --per 1m && ./send-mail\n"
        "  quipu limit take mails --rate 100 --per 1m --burst 20 --count 5 --wait 30s\n"
        "  quipu limit get mails\n"
        "  quipu limit list\n"
        "  quipu limit rm mails");

PATTERN(history, "keep every change of a table; see and restore what was",
        "A history keeps every change of a table from the moment on when it is asked for.",
        "  quipu history put orders --keep 30d\n"
        "  quipu history get orders 4711\n"
        "  quipu history get orders 4711 --at 2026-11-15T03:42:06Z\n"
        "  quipu history show orders --from 2026-11-15T03:00:00Z --to 2026-11-15T04:00:00Z\n"
        "  quipu history show orders --at 2026-11-15T03:42:06Z  # the whole table\n"
        "  quipu history restore orders 4711 --at 2026-11-15T03:42:06Z\n"
        "  quipu history show orders\n"
        "  quipu history ls\n"
        "  quipu history feed orders < records.json        # by hand, where no server does it\n"
        "  quipu history rm orders");

PATTERN(log, "events numbered without a gap, read by groups of consumers",
        "A log keeps events in order by key, without gaps; groups of consumers share the reading.",
        "  quipu log put clicks --partitions 4\n"
        "  quipu log put clicks --scale '{\"split_above\":\"500/s\",\"merge_below\":\"50/s\"}'\n"
        "  quipu log append clicks ann '{\"page\":\"/\"}'\n"
        "  quipu log append clicks ann 2 --expected 17     # only if nothing of ann stands behind 17\n"
        "  quipu log append clicks ann < lines.json        # each line the data of an event\n"
        "  quipu log append clicks < events.json           # each line {\"key\":...,\"data\":...}\n"
        "  quipu log read clicks mailer --follow           # prints, then acks\n"
        "  quipu log read clicks mailer me --json          # one reply, to be acked by hand\n"
        "  quipu log ack clicks mailer 0 7 17\n"
        "  quipu log park clicks mailer 0 7 17 'bad data'\n"
        "  quipu log parked clicks mailer\n"
        "  quipu log replay clicks mailer --time start\n"
        "  quipu log lag clicks mailer\n"
        "  quipu log show clicks\n"
        "  quipu log events clicks 0 --after 100\n"
        "  quipu log key clicks ann                        # events of one key\n"
        "  quipu log split clicks 0\n"
        "  quipu log merge clicks 4 5\n"
        "  quipu log push clicks mailer send-mail --batch 50   # the server calls the function\n"
        "  quipu log pushed clicks mailer\n"
        "  quipu log leave clicks mailer\n"
        "  quipu log list\n"
        "  quipu log rm clicks");

PATTERN(drive, "what the server drives by itself",
        "A queue of work (work put --each) may have the server hand its units to a function, a URL or a pattern\n"
        "by itself, so many at a time. This lists all that is driven, with its settings.",
        "  quipu work put mails --each send-mail --concurrency 10\n"
        "  quipu work put mails --paused             # --paused=false: goes on\n"
        "  quipu drive ls\n"
        "  quipu drive rm job:pages --version 1794835773536");

PATTERN(board, "messages in the order of their time",
        "A board holds messages, the oldest first.",
        "  quipu board post team 'lunch at noon' --author ann\n"
        "  date | quipu board post team -\n"
        "  quipu board ls team\n"
        "  quipu board ls team --before now --limit 5      # the latest\n"
        "  quipu board rm team 2026-11-15T03:42:06.250Z-000001-5f3c9d\n"
        "  quipu board list                                # the boards\n"
        "  quipu board clear team");
// clang-format on
