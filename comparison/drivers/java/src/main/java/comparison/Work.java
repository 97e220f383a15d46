package comparison;

import java.time.Duration;

/** What a leader does, on a thread of its own, from onStartLeading to onStopLeading. */
final class Work {
  private final Log log;
  private final Duration period;
  private boolean leads;
  private boolean isOver;
  private Thread worker;

  Work(Log log, Duration period) {
    this.log = log;
    this.period = period;
  }

  synchronized void start() {
    if (isOver || leads) {
      return;
    }
    leads = true;
    worker = new Thread(this::run, "work");
    worker.start();
  }

  synchronized void stop() {
    leads = false;
    notifyAll();
  }

  /** Ends the work, and waits for its end. */
  void finish() throws InterruptedException {
    Thread last;
    synchronized (this) {
      isOver = true;
      leads = false;
      notifyAll();
      last = worker;
    }
    if (last != null) {
      last.join();
    }
  }

  private synchronized void run() {
    var event = "start";
    try {
      while (leads) {
        log.append(event);
        event = "work";
        wait(period.toMillis());
      }
    } catch (InterruptedException ended) {
      Thread.currentThread().interrupt();
    }
    log.append("stop");
  }
}
