package comparison;

import java.io.FileOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;

/** The work of all candidates of an election. */
final class Log {
  private final FileOutputStream file;
  private final String identity;

  Log(String path, String identity) throws IOException {
    this.file = new FileOutputStream(path, true);
    this.identity = identity;
  }

  /**
   * Writes one entry at once. On Linux, nanoTime is the monotonic clock of the machine. An entry that cannot be written
   * ends the process.
   */
  void append(String event) {
    var line = System.nanoTime() + " " + identity + " - " + event + "\n";
    try {
      file.write(line.getBytes(StandardCharsets.UTF_8));
    } catch (IOException error) {
      System.err.println("cannot write to the log: " + error);
      Runtime.getRuntime().halt(1);
    }
  }
}
