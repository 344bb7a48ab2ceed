# frozen_string_literal: true

# The worker's side: counts each job by the number at the head of its body, and writes the counts down now and then
# (bench/harness/tally.py tells the format). Safe between threads; a write replaces the file as a whole.
require 'json'

class Tally
  NUMBER_DIGITS = 10
  FAILURES = 2

  def initialize
    @counts = "\0".b * Integer(ENV.fetch('BENCH_JOBS'))
    @path = File.join(ENV.fetch('BENCH_TALLY'), "#{Process.pid}.tally")
    @period_s = Integer(ENV.fetch('BENCH_TALLY_MS')) / 1000.0
    @lock = Mutex.new
    @handled = 0
    @failed = 0
    @failures = Hash.new(0)
    Thread.new { write_down }
  end

  def count(body)
    number = number_of(body)
    @lock.synchronize do
      @last = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
      @first ||= @last
      @handled += 1
      seen = @counts.getbyte(number)
      @counts.setbyte(number, seen + 1) if seen < 255
    end
  end

  # Whether a job has to fail now: Sidekiq does not tell a job how often it was tried, and it is always this process.
  def fails?(body)
    number = number_of(body)
    return false unless (number % 10).zero?

    @lock.synchronize do
      next false if @failures[number] == FAILURES

      @failures[number] += 1
      @failed += 1
      true
    end
  end

  private

  def number_of(body)
    body[0, NUMBER_DIGITS].to_i
  end

  def write_down
    written = 0
    loop do
      sleep @period_s
      seen, text = @lock.synchronize do
        head = JSON.generate(handled: @handled, failed: @failed, first_ns: @first.to_i, last_ns: @last.to_i)
        [@handled + @failed, "#{head}\n".b + @counts]
      end
      next if seen == written

      File.binwrite("#{@path}.new", text)
      File.rename("#{@path}.new", @path)
      written = seen
    end
  end
end
