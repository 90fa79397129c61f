// SPDX-License-Identifier: Apache-2.0
// Objects, compiled methods, and threads: see programs.bats.
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.IntStream;

public class Counts {
	static final List<String> kept = new ArrayList<>();

	static long sum() {
		long s = 0;
		for (String text : kept)
			s = s * 31 + text.hashCode();
		return s;
	}

	public static void main(String[] args) throws Exception {
		IntStream.range(0, 50000).forEach(i -> kept.add("text " + i));
		final long first = sum();
		final var threads = Executors.newFixedThreadPool(3);
		for (int n = 1;; n++) {
			final List<Future<Long>> sums = new ArrayList<>();
			for (int i = 0; i < 3; i++)
				sums.add(threads.submit(Counts::sum));
			for (Future<Long> s : sums)
				if (s.get() != first)
					Files.writeString(Path.of("/bad"), s.get() + " in place of " + first);
			Files.writeString(Path.of("/n"), n + "\n");
			Thread.sleep(10);
		}
	}
}
