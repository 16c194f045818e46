//: what A Java pool of four threads and a timer; a task each 100 ms.
//: healthy
import java.util.concurrent.*;

class Main {
    public static void main(String[] args) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(4);
        ScheduledExecutorService timer = Executors.newScheduledThreadPool(1);
        BlockingQueue<Integer> answers = new LinkedBlockingQueue<>();
        timer.scheduleAtFixedRate(() -> pool.submit(() -> answers.add(1)), 100, 100, TimeUnit.MILLISECONDS);
        for (int i = 0; i < 10; i++) answers.take();
        timer.shutdownNow();
        pool.shutdown();
        pool.awaitTermination(1, TimeUnit.SECONDS);
    }
}
