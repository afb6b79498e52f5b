package io.streamshaper.examples.app;

import java.io.IOException;
import java.io.StringReader;
import java.nio.charset.CharacterCodingException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.MatchResult;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.config.ConfigTransformer;
import org.apache.kafka.common.config.provider.ConfigProvider;
import org.apache.kafka.common.config.provider.DirectoryConfigProvider;
import org.apache.kafka.common.config.provider.EnvVarConfigProvider;
import org.apache.kafka.common.config.provider.FileConfigProvider;

/**
 * A properties file, each key once, in UTF-8. {@code ${env:NAME}}, {@code ${file:PATH:KEY}} and
 * {@code ${dir:PATH:FILE}} stand for what is kept elsewhere, as in Kafka Connect; what they stood
 * for is never shown.
 */
final class ConfigFile {
  private static final Pattern REFERENCE = ConfigTransformer.DEFAULT_PATTERN;
  private static final String BYTE_ORDER_MARK = "\uFEFF";
  static final String MASK = "********";

  private final Map<String, ConfigProvider> providers;
  private final Map<String, String> written = new TreeMap<>();
  private final Map<String, String> values = new TreeMap<>();

  /** The longest first: one may be a part of another. */
  private final Set<String> secrets =
      new TreeSet<>(
          Comparator.comparingInt(String::length).reversed().thenComparing(secret -> secret));

  private ConfigFile(Map<String, String> environment) {
    providers =
        Map.of(
            "env", new EnvVarConfigProvider(environment),
            "file", new FileConfigProvider(),
            "dir", new DirectoryConfigProvider());
    providers.values().forEach(provider -> provider.configure(Map.of()));
  }

  /**
   * Reads it all.
   *
   * @throws ConfigException with what is wrong with the file, in one line
   */
  static ConfigFile read(Path path, Map<String, String> environment) {
    ConfigFile file = new ConfigFile(environment);
    file.load(text(path));
    file.written.forEach((key, value) -> file.values.put(key, file.resolved(key, value)));
    return file;
  }

  /** By key, with what the references stand for. */
  Map<String, String> values() {
    return values;
  }

  /** The value as it is in the file; null: not there. */
  String written(String key) {
    return written.get(key);
  }

  /** The text without anything that a reference stood for. */
  String masked(String text) {
    String masked = text;
    for (String secret : secrets) {
      masked = masked.replace(secret, MASK);
    }
    return masked;
  }

  private static String text(Path path) {
    try {
      String text = Files.readString(path);
      if (text.indexOf('\0') >= 0) {
        throw new ConfigException("the file must be text in UTF-8");
      }
      return text.startsWith(BYTE_ORDER_MARK) ? text.substring(1) : text;
    } catch (CharacterCodingException e) {
      throw new ConfigException("the file must be text in UTF-8");
    } catch (NoSuchFileException e) {
      throw new ConfigException("the file must exist");
    } catch (IOException e) {
      throw new ConfigException("the file must be readable, was not: " + e.getMessage());
    }
  }

  private void load(String text) {
    try {
      new EachKeyOnce().load(new StringReader(text));
    } catch (IllegalArgumentException e) {
      throw new ConfigException("a \\u in the file must have four hexadecimal digits behind it");
    } catch (IOException e) {
      throw new IllegalStateException("text in memory is always readable", e);
    }
  }

  private String resolved(String key, String value) {
    return REFERENCE
        .matcher(value)
        .replaceAll(reference -> Matcher.quoteReplacement(resolved(key, reference)));
  }

  private String resolved(String key, MatchResult reference) {
    ConfigProvider provider = providers.get(reference.group(1));
    if (provider == null) {
      return reference.group(); // perhaps of a provider that the file configures
    }
    String path = reference.group(3) == null ? "" : reference.group(3);
    String name = reference.group(4);
    String secret = provider.get(path, Set.of(name)).data().get(name);
    if (secret == null) {
      throw new ConfigException(key + " must refer to what is there, was " + reference.group());
    }
    if (!secret.isBlank()) {
      secrets.add(secret);
    }
    return secret;
  }

  /** {@link Properties} alone would keep the last of equal keys, and say nothing. */
  private final class EachKeyOnce extends Properties {
    private static final long serialVersionUID = 1;

    @Override
    public synchronized Object put(Object key, Object value) {
      if (written.put((String) key, (String) value) != null) {
        throw new ConfigException(key + " must be in the file once, was there again");
      }
      return null;
    }
  }
}
