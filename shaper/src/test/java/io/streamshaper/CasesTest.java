package io.streamshaper;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/**
 * What other people's schedulers, limiters and queues got wrong: {@code cases/list.txt}. For each,
 * {@code cases/table.tsv} has one word, and behind a tab the tests that show it, or the reason:
 * <em>covered</em>; <em>fixed</em>, with what changed; <em>not ours</em>.
 */
class CasesTest {
  /** Tests run in their module's folder. */
  private static final Path RESOURCES = Path.of("src", "test", "resources", "cases");

  private static final List<Path> SOURCES =
      List.of(
          Path.of("src/test/java/io/streamshaper"),
          Path.of("src/test/java/io/streamshaper/aqm"),
          Path.of("../examples/src/test/java/io/streamshaper/examples"));

  private record Entry(String word, List<String> rest) {}

  @Test
  void eachCaseHasOneEntry() {
    List<String> cases =
        lines("list.txt").stream().map(line -> line.substring(0, line.indexOf(' '))).toList();
    assertThat(cases).hasSize(79).doesNotHaveDuplicates();
    assertThat(lines("table.tsv").stream().map(line -> line.substring(0, line.indexOf('\t'))))
        .containsExactlyElementsOf(cases);
  }

  @Test
  void eachEntryNamesTestsThatThereAreOrAReason() {
    table()
        .forEach(
            (id, entry) -> {
              switch (entry.word) {
                case "covered" -> assertThat(entry.rest).as(id).hasSize(1);
                case "fixed" -> assertThat(entry.rest).as(id).hasSize(2).doesNotContain("");
                case "not ours" -> assertThat(entry.rest).as(id).hasSize(1).doesNotContain("");
                default -> throw new AssertionError("case " + id + ": word " + entry.word);
              }
              if (!entry.word.equals("not ours")) {
                for (String test : entry.rest.get(0).split(" ", -1)) {
                  assertThat(exists(test)).as("test %s of case %s", test, id).isTrue();
                }
              }
            });
  }

  @Test
  void aTestThatThereIsNotIsFoundOut() {
    assertThat(exists("CasesTest.eachCaseHasOneEntry")).isTrue();
    assertThat(exists("CasesTest.eachCase")).isFalse();
    assertThat(exists("CasesTest.table")).isFalse();
    assertThat(exists("NoTest.eachCaseHasOneEntry")).isFalse();
  }

  private static Map<String, Entry> table() {
    Map<String, Entry> table = new LinkedHashMap<>();
    for (String line : lines("table.tsv")) {
      List<String> fields = List.of(line.split("\t", -1));
      table.put(fields.get(0), new Entry(fields.get(1), fields.subList(2, fields.size())));
    }
    return table;
  }

  private static boolean exists(String test) {
    int dot = test.indexOf('.');
    String declaration =
        "\\n  (static final ArchRule|void|Stream<DynamicTest>) "
            + Pattern.quote(test.substring(dot + 1))
            + "( =|\\()";
    return SOURCES.stream()
        .map(folder -> folder.resolve(test.substring(0, dot) + ".java"))
        .filter(Files::exists)
        .anyMatch(file -> Pattern.compile(declaration).matcher(read(file)).find());
  }

  private static List<String> lines(String file) {
    return read(RESOURCES.resolve(file)).lines().toList();
  }

  private static String read(Path file) {
    try {
      return Files.readString(file);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
