package io.streamshaper;

import static com.tngtech.archunit.base.DescribedPredicate.not;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.belongToAnyOf;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAPackage;
import static com.tngtech.archunit.core.domain.properties.HasName.Predicates.nameStartingWith;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;

import com.tngtech.archunit.base.DescribedPredicate;
import com.tngtech.archunit.core.domain.JavaCall;
import com.tngtech.archunit.core.importer.ImportOption;
import com.tngtech.archunit.junit.AnalyzeClasses;
import com.tngtech.archunit.junit.ArchTest;
import com.tngtech.archunit.lang.ArchRule;
import java.util.Random;
import java.util.SplittableRandom;
import java.util.Timer;
import java.util.concurrent.TimeUnit;

@AnalyzeClasses(packages = "io.streamshaper", importOptions = ImportOption.DoNotIncludeTests.class)
class ArchitectureTest {
  private static final String ALGORITHM = "io.streamshaper.aqm..";

  @ArchTest
  static final ArchRule theAlgorithmDependsOnTheJdkAlone =
      classes()
          .that()
          .resideInAPackage(ALGORITHM)
          .should()
          .onlyDependOnClassesThat()
          .resideInAnyPackage("java.lang..", "java.util..", ALGORITHM);

  @ArchTest
  static final ArchRule theAlgorithmReadsNoClock =
      noClasses()
          .that()
          .resideInAPackage(ALGORITHM)
          .should()
          .callMethod(System.class, "nanoTime")
          .orShould()
          .callMethod(System.class, "currentTimeMillis")
          .orShould()
          .dependOnClassesThat()
          .resideInAPackage("java.time..");

  @ArchTest
  static final ArchRule theAlgorithmStartsNoThreadAndRollsNoDice =
      noClasses()
          .that()
          .resideInAPackage(ALGORITHM)
          .should()
          .dependOnClassesThat(
              belongToAnyOf(Thread.class, Timer.class, Random.class, SplittableRandom.class)
                  .or(resideInAPackage("java.util.concurrent.."))
                  .or(resideInAPackage("java.util.random..")))
          .orShould()
          .callMethod(Math.class, "random");

  @ArchTest
  static final ArchRule nothingDependsOnTheInternalsOfKafka =
      noClasses().should().dependOnClassesThat().resideInAPackage("org.apache.kafka..internals..");

  // Micrometer is an optional dependency: a second class that names it would need it to load.
  @ArchTest
  static final ArchRule onlyShaperMetricsNamesMicrometer =
      noClasses()
          .that(not(nameStartingWith("io.streamshaper.ShaperMetrics")))
          .should()
          .dependOnClassesThat()
          .resideInAPackage("io.micrometer..")
          .allowEmptyShould(true);

  // The stream thread must poll: one that sleeps is thrown out of its group.
  @ArchTest
  static final ArchRule nothingSleepsOrWaits =
      noClasses()
          .should()
          .callMethodWhere(callTo(Thread.class, "sleep"))
          .orShould()
          .callMethodWhere(callTo(TimeUnit.class, "sleep"))
          .orShould()
          .callMethodWhere(callTo(Object.class, "wait"));

  private static DescribedPredicate<JavaCall<?>> callTo(Class<?> owner, String method) {
    return DescribedPredicate.describe(
        owner.getSimpleName() + "." + method,
        call -> call.getTargetOwner().isEquivalentTo(owner) && call.getName().equals(method));
  }
}
