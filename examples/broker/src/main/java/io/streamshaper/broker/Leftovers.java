package io.streamshaper.broker;

import java.io.IOException;
import java.lang.ProcessBuilder.Redirect;
import java.nio.file.Path;

/**
 * Deletes a folder after this JVM, even one that is killed: a shell reads from us, who write
 * nothing, and deletes the folder when its input ends. That is when we end, or close it.
 */
public final class Leftovers {

  private Leftovers() {}

  /** Close the shell's input to have the folder deleted earlier. Ctrl-C reaches only us. */
  public static Process deleteAtOurEnd(Path folder) throws IOException {
    String script = "trap '' INT TERM HUP; read -r end; rm -rf \"$0\"";
    return new ProcessBuilder("sh", "-c", script, folder.toString())
        .redirectOutput(Redirect.DISCARD)
        .redirectError(Redirect.DISCARD)
        .start();
  }
}
