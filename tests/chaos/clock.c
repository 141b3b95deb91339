/* Shifts the clock on the wall by the seconds that the file CLOCK_SHIFT_FILE says, now: LD_PRELOAD=clock.so.
 *
 * The monotonic clock stays, as it does when an administrator or NTP sets the time. libfaketime 0.9.10 breaks the
 * sleep of Python 3.11 when it is told to leave that clock alone.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long shift(void)
{
    char text[32] = "";
    const char *path = getenv("CLOCK_SHIFT_FILE");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0)
        return 0;
    if (read(file, text, sizeof text - 1) < 0)
        text[0] = 0;
    close(file);
    return atol(text);
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    int failed = syscall(SYS_clock_gettime, clock, now);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        now->tv_sec += shift();
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    struct timespec precise;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &precise))
        return -1;
    now->tv_sec = precise.tv_sec;
    now->tv_usec = precise.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *where)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (where)
        *where = now.tv_sec;
    return now.tv_sec;
}

/* Its deadline is a time on the wall, which the kernel compares with the true one. */
int sem_timedwait(sem_t *restrict semaphore, const struct timespec *restrict deadline)
{
    static int (*wait)(sem_t *, const struct timespec *);
    struct timespec true_deadline = *deadline;
    if (!wait)
        wait = (int (*)(sem_t *, const struct timespec *))dlsym(RTLD_NEXT, "sem_timedwait");
    true_deadline.tv_sec -= shift();
    return wait(semaphore, &true_deadline);
}
