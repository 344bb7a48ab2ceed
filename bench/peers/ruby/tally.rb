# frozen_string_literal: true

# The worker's side: counts each job by the number at the head of its body, and writes the counts down now and then
# (bench/harness/tally.py tells the format). Safe between threads; a write replaces the file as a whole.
require 'json'

class Tally
  NUMBER_DIGITS = 10

  def initialize
    @counts = "\0".b * Integer(ENV.fetch('BENCH_JOBS'))
    @path = File.join(ENV.fetch('BENCH_TALLY'), "#{Process.pid}.tally")
    @period_s = Integer(ENV.fetch('BENCH_TALLY_MS')) / 1000.0
    @lock = Mutex.new
    @handled = 0
    Thread.new { write_down }
  end

  def count(body)
    number = body[0, NUMBER_DIGITS].to_i
    @lock.synchronize do
      @last = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
      @first ||= @last
      @handled += 1
      seen = @counts.getbyte(number)
      @counts.setbyte(number, seen + 1) if seen < 255
    end
  end

  private

  def write_down
    written = 0
    loop do
      sleep @period_s
      handled, text = @lock.synchronize do
        [@handled, "#{JSON.generate(handled: @handled, first_ns: @first, last_ns: @last)}\n".b + @counts]
      end
      next if handled == written

      File.binwrite("#{@path}.new", text)
      File.rename("#{@path}.new", @path)
      written = handled
    end
  end
end
